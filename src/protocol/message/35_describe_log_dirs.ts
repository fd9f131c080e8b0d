/**
 * DescribeLogDirs, key 35, versions 1-4, flexible from 2. A null topic list means all.
 * 3 adds an error for the whole answer, 4 the size of the volume (KIP-827).
 */
import { api } from "../api.ts";
import { bool, int16, int32, int64, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 4, flexibleFrom: 2 };

const describableLogDirTopic = struct({
  topic: string,
  partitions: array(int32),
});

export const describeLogDirsRequest = message("DescribeLogDirsRequest", VERSIONS, {
  topics: since(0, array(describableLogDirTopic), { nullableSince: 0 }),
});

const describeLogDirsPartition = struct({
  partitionIndex: int32,
  partitionSize: int64,
  offsetLag: int64,
  isFutureKey: bool,
});

const describeLogDirsTopic = struct({
  name: string,
  partitions: array(describeLogDirsPartition),
});

const describeLogDirsResult = struct({
  errorCode: int16,
  logDir: string,
  topics: array(describeLogDirsTopic),
  totalBytes: since(4, int64, { default: -1 }),
  usableBytes: since(4, int64, { default: -1 }),
});

export const describeLogDirsResponse = message("DescribeLogDirsResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: since(3, int16),
  results: array(describeLogDirsResult),
});

export type DescribeLogDirsRequest = Infer<typeof describeLogDirsRequest>;
export type DescribeLogDirsResponse = InferInput<typeof describeLogDirsResponse>;
export const describeLogDirsApi = api(35, describeLogDirsRequest, describeLogDirsResponse);
