/**
 * Bounds-checked big-endian reading and writing over Uint8Array.
 * 64-bit integers are read as two halves into a number; a value outside the safe range is refused.
 */

/** Input bytes that do not parse. Wire code maps it to the protocol's own error. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

const TWO_32 = 2 ** 32;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function utf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new DecodeError("Cannot decode text: not valid UTF-8", { cause });
  }
}

export function toUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const first = parts[0];
  if (parts.length === 1 && first !== undefined) return first;
  let length = 0;
  for (const part of parts) length += part.length;
  const out = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** Parses hex digits; white space is skipped. */
export function fromHex(text: string): Uint8Array {
  const digits = text.replace(/\s+/g, "");
  if (digits.length % 2 !== 0 || /[^0-9a-f]/i.test(digits)) {
    throw new DecodeError(`Cannot parse hex: ${text.slice(0, 40)}`);
  }
  const out = new Uint8Array(digits.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return out;
}

/** Reads a signed 64-bit integer at a position of a view as a safe number. */
export function getInt64(view: DataView, at: number): number {
  const value = view.getInt32(at) * TWO_32 + view.getUint32(at + 4);
  if (!Number.isSafeInteger(value)) {
    throw new DecodeError(`Cannot read int64: ${value} is not a safe integer`);
  }
  return value;
}

export function setInt64(view: DataView, at: number, value: number): void {
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(`Cannot write int64: ${value} is not a safe integer`);
  }
  view.setInt32(at, Math.floor(value / TWO_32));
  view.setUint32(at + 4, value >>> 0);
}

/** Reads forward through bytes; every read checks the bounds first and throws DecodeError. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #elementsLeft = Infinity;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = viewOf(bytes);
  }

  get position(): number {
    return this.#at;
  }
  get remaining(): number {
    return this.bytes.length - this.#at;
  }

  #take(count: number): number {
    if (count < 0 || count > this.remaining) {
      throw new DecodeError(`Cannot read ${count} bytes at ${this.#at}: ${this.remaining} left`);
    }
    const at = this.#at;
    this.#at += count;
    return at;
  }

  /** Bounds what all arrays read from now on hold together: a few bytes of input can be a large object. */
  limitElements(max: number): void {
    this.#elementsLeft = max;
  }
  /** Called before `count` elements are read. */
  countElements(count: number): void {
    this.#elementsLeft -= count;
    if (this.#elementsLeft < 0) throw new DecodeError("Cannot read arrays: too many elements");
  }

  skip(count: number): void {
    this.#take(count);
  }
  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }
  i8(): number {
    return this.#view.getInt8(this.#take(1));
  }
  i16(): number {
    return this.#view.getInt16(this.#take(2));
  }
  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }
  i32(): number {
    return this.#view.getInt32(this.#take(4));
  }
  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }
  i64(): number {
    return getInt64(this.#view, this.#take(8));
  }
  /** For the few fields that may use all 64 bits. */
  bigI64(): bigint {
    return this.#view.getBigInt64(this.#take(8));
  }
  f64(): number {
    return this.#view.getFloat64(this.#take(8));
  }

  /** A view of the next bytes; no copy. */
  take(count: number): Uint8Array {
    const at = this.#take(count);
    return this.bytes.subarray(at, at + count);
  }

  /** Unsigned varint of at most 32 bits. */
  uvarint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.u8();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value >= TWO_32) break;
        return value;
      }
    }
    throw new DecodeError("Cannot read varint: longer than 32 bits");
  }

  /** Zig-zag varint of at most 32 bits. */
  varint(): number {
    const value = this.uvarint();
    return (value >>> 1) ^ -(value & 1);
  }

  /** Zig-zag varint of at most 64 bits, as a safe number. */
  varlong(): number {
    // Four bytes carry 28 bits: what nearly every delta needs, without BigInt.
    let small = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.u8();
      small |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (small >>> 1) ^ -(small & 1);
    }
    let low = BigInt(small);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.u8();
      low |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        const value = Number((low >> 1n) ^ -(low & 1n));
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
    }
    throw new DecodeError("Cannot read varlong: not a safe integer");
  }
}

const INITIAL_CAPACITY = 256;

/** Writes forward into a buffer that grows by doubling. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #at = 0;

  constructor(capacity = INITIAL_CAPACITY) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = viewOf(this.#bytes);
  }

  get length(): number {
    return this.#at;
  }

  #room(count: number): number {
    const end = this.#at + count;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, this.#at));
      this.#bytes = grown;
      this.#view = viewOf(grown);
    }
    const at = this.#at;
    this.#at = end;
    return at;
  }

  u8(value: number): void {
    const at = this.#room(1);
    this.#view.setUint8(at, value);
  }
  i8(value: number): void {
    const at = this.#room(1);
    this.#view.setInt8(at, value);
  }
  i16(value: number): void {
    const at = this.#room(2);
    this.#view.setInt16(at, value);
  }
  u16(value: number): void {
    const at = this.#room(2);
    this.#view.setUint16(at, value);
  }
  i32(value: number): void {
    const at = this.#room(4);
    this.#view.setInt32(at, value);
  }
  u32(value: number): void {
    const at = this.#room(4);
    this.#view.setUint32(at, value);
  }
  i64(value: number): void {
    const at = this.#room(8);
    setInt64(this.#view, at, value);
  }
  bigI64(value: bigint): void {
    const at = this.#room(8);
    this.#view.setBigInt64(at, value);
  }
  f64(value: number): void {
    const at = this.#room(8);
    this.#view.setFloat64(at, value);
  }
  bytes(value: Uint8Array): void {
    const at = this.#room(value.length);
    this.#bytes.set(value, at);
  }
  uvarint(value: number): void {
    let rest = value >>> 0;
    while (rest >= 0x80) {
      this.u8((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.u8(rest);
  }
  varint(value: number): void {
    this.uvarint((value << 1) ^ (value >> 31));
  }
  varlong(value: number): void {
    if ((value | 0) === value) return this.varint(value);
    const wide = BigInt(value);
    let rest = BigInt.asUintN(64, (wide << 1n) ^ (wide >> 63n));
    while (rest >= 0x80n) {
      this.u8(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.u8(Number(rest));
  }

  /** Overwrites four bytes written earlier; for lengths known only at the end. */
  patchI32(at: number, value: number): void {
    if (at + 4 > this.#at) {
      throw new RangeError(`Cannot patch at ${at}: only ${this.#at} bytes written`);
    }
    this.#view.setInt32(at, value);
  }

  /** A view of what was written; valid until the next write. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }
}
