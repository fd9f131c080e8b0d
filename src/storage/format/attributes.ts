/**
 * Attributes of a data object as one i32 (AutoMQ's ObjectAttributes).
 *
 *   bits 0-1 type (0 normal, 1 composite) · bits 2-17 bucket (i16) · bit 18 deep delete
 *
 * The bucket is masked to 16 bits: a negative one must not set the bits above it.
 */
import { DecodeError } from "../../lib/bytes.ts";

export type ObjectType = "normal" | "composite";

export interface ObjectAttributes {
  readonly type: ObjectType;
  readonly bucket: number;
  /** The linked objects of a composite are deleted with it. */
  readonly deepDelete: boolean;
}

const TYPE_MASK = 0b11;
const BUCKET_SHIFT = 2;
const BUCKET_MASK = 0xffff;
const DEEP_DELETE = 1 << 18;
const TYPES: readonly ObjectType[] = ["normal", "composite"];

/** A plain object in the only bucket. */
export const NORMAL_OBJECT = 0;

export function encodeAttributes({ type, bucket, deepDelete }: ObjectAttributes): number {
  return TYPES.indexOf(type) | ((bucket & BUCKET_MASK) << BUCKET_SHIFT) |
    (deepDelete ? DEEP_DELETE : 0);
}

export function decodeAttributes(bits: number): ObjectAttributes {
  const type = TYPES[bits & TYPE_MASK];
  if (type === undefined) throw new DecodeError(`Unknown object type ${bits & TYPE_MASK}`);
  const bucket = (bits >> BUCKET_SHIFT) & BUCKET_MASK;
  return {
    type,
    bucket: bucket > 0x7fff ? bucket - 0x10000 : bucket,
    deepDelete: (bits & DEEP_DELETE) !== 0,
  };
}
