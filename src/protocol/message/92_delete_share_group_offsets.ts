/** DeleteShareGroupOffsets, key 92, version 0, flexible (KIP-932). */
import { api } from "../api.ts";
import { int16, int32, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };
const nullString = { nullableSince: 0, default: null };

export const deleteShareGroupOffsetsRequest = message("DeleteShareGroupOffsetsRequest", VERSIONS, {
  groupId: string,
  topics: array(struct({ topicName: string })),
});

const topic = struct({
  topicName: string,
  topicId: uuid,
  errorCode: int16,
  errorMessage: since(0, string, nullString),
});

export const deleteShareGroupOffsetsResponse = message(
  "DeleteShareGroupOffsetsResponse",
  VERSIONS,
  {
    throttleTimeMs: since(0, int32, { default: 0 }),
    errorCode: int16,
    errorMessage: since(0, string, nullString),
    responses: array(topic),
  },
);

export type DeleteShareGroupOffsetsRequest = Infer<typeof deleteShareGroupOffsetsRequest>;
export type DeleteShareGroupOffsetsResponse = InferInput<typeof deleteShareGroupOffsetsResponse>;
export const deleteShareGroupOffsetsApi = api(
  92,
  deleteShareGroupOffsetsRequest,
  deleteShareGroupOffsetsResponse,
);
