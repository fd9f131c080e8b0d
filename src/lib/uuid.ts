/** UUIDs as 32 lower-case hex digits: comparable, usable as map keys, 16 bytes on the wire. */
import { fromHex, toHex } from "./bytes.ts";

export type Uuid = string;

export const ZERO_UUID: Uuid = "0".repeat(32);

export function uuidOf(bytes: Uint8Array): Uuid {
  return toHex(bytes);
}

export function uuidBytes(uuid: Uuid): Uint8Array {
  return fromHex(uuid);
}
