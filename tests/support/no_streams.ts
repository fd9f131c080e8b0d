/** A gateway without durable streams, for tests of everything else. */
import type { StreamGateway } from "../../src/http/mounts/durable_streams/port.ts";

const unused = () => Promise.reject(new Error("unexpected"));

export const NO_STREAMS: StreamGateway = {
  findStream: () => null,
  touchStream: () => {},
  createStream: unused,
  streamById: () => null,
  removeStream: unused,
  readStream: unused,
  streamTail: unused,
  peekTail: () => null,
  step: unused,
};
