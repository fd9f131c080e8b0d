/**
 * Assembles the WebAssembly module behind crc32c.ts and crc32.ts: "slicing by 16" over reflected CRC-32.
 * The module knows no polynomial: its user fills sixteen tables of 256 words at address 0 of `memory`,
 * so one module serves every polynomial. Built in code, so that no runtime has an asset file to find.
 */

/** Bytes of the sixteen lookup tables at the start of memory. */
export const CRC_TABLE_BYTES = 16 * 1024;
/** Where input is copied to, and how much fits: memory's second page. */
export const CRC_WINDOW_AT = 64 * 1024;
export const CRC_WINDOW_BYTES = 64 * 1024;

export interface CrcExports {
  readonly memory: WebAssembly.Memory;
  /** Continues `crc` over `length` bytes at `start`. */
  readonly update: (start: number, length: number, crc: number) => number;
}

type Code = readonly number[];

/** The few instructions in use, named as in the WebAssembly text format. */
const I32 = 0x7f;
const I64 = 0x7e;
const VOID = 0x40;
const BLOCK = 0x02;
const LOOP = 0x03;
const END = 0x0b;
const BR = 0x0c;
const BR_IF = 0x0d;
const LOCAL_GET = 0x20;
const LOCAL_SET = 0x21;
const I32_LOAD = 0x28;
const I64_LOAD = 0x29;
const I32_LOAD8_U = 0x2d;
const I32_CONST = 0x41;
const I64_CONST = 0x42;
const I32_GE_U = 0x4f;
const I32_ADD = 0x6a;
const I32_AND = 0x71;
const I32_XOR = 0x73;
const I32_SHL = 0x74;
const I32_SHR_U = 0x76;
const I64_XOR = 0x85;
const I64_SHR_U = 0x88;
const I32_WRAP_I64 = 0xa7;
const I64_EXTEND_I32_U = 0xad;

/** Local variables of `update`: three parameters, then our own. */
const AT = 0;
const LENGTH = 1;
const CRC = 2;
const END_AT = 3;
const END_OF_16 = 4;
const LOW = 5;
const HIGH = 6;

function unsignedLeb(value: number): Code {
  const out: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) out.push((rest & 0x7f) | 0x80);
  return [...out, rest];
}

function signedLeb(value: number): Code {
  const out: number[] = [];
  let rest = value;
  for (; rest < -64 || rest > 63; rest >>= 7) out.push((rest & 0x7f) | 0x80);
  return [...out, rest & 0x7f];
}

const get = (local: number): Code => [LOCAL_GET, local];
const set = (local: number): Code => [LOCAL_SET, local];
const i32 = (value: number): Code => [I32_CONST, ...signedLeb(value)];
const i64 = (value: number): Code => [I64_CONST, ...signedLeb(value)];
const load = (
  op: number,
  align: number,
  offset: number,
): Code => [op, align, ...unsignedLeb(offset)];

/** Table `table`'s word for byte `k` of an i64 local: ((local >> 8k) & 255) * 4, as one shift and mask. */
function lookUp(local: number, k: number, table: number): Code {
  const scaled = k === 0
    ? [I32_WRAP_I64, ...i32(2), I32_SHL]
    : [...i64(8 * k - 2), I64_SHR_U, I32_WRAP_I64];
  return [...get(local), ...scaled, ...i32(0x3fc), I32_AND, ...load(I32_LOAD, 2, table * 1024)];
}

/** Byte i of the sixteen is followed by 15 - i more, hence its table. */
function lookUpByte(i: number): Code {
  return lookUp(i < 8 ? LOW : HIGH, i % 8, 15 - i);
}

/** XOR of the look-ups of bytes [from, to), as a balanced tree: short dependency chains. */
function xorOfBytes(from: number, to: number): Code {
  if (to - from === 1) return lookUpByte(from);
  const middle = (from + to) >> 1;
  return [...xorOfBytes(from, middle), ...xorOfBytes(middle, to), I32_XOR];
}

/** Sixteen bytes at once. The first four depend on the running CRC, so they are looked up last. */
// deno-fmt-ignore
const SIXTEEN_BYTES: Code = [
  ...get(CRC), I64_EXTEND_I32_U, ...get(AT), ...load(I64_LOAD, 0, 0), I64_XOR, ...set(LOW),
  ...get(AT), ...load(I64_LOAD, 0, 8), ...set(HIGH),
  ...xorOfBytes(4, 16), ...xorOfBytes(0, 4), I32_XOR, ...set(CRC),
];

/** crc = (crc >> 8) ^ table0[(crc ^ byte) & 255]. */
// deno-fmt-ignore
const ONE_BYTE: Code = [
  ...get(CRC), ...i32(8), I32_SHR_U,
  ...get(CRC), ...get(AT), ...load(I32_LOAD8_U, 0, 0), I32_XOR, ...i32(255), I32_AND, ...i32(2), I32_SHL,
  ...load(I32_LOAD, 2, 0), I32_XOR, ...set(CRC),
];

/** while (at < end) { body; at += step } */
function loopUntil(end: number, step: number, body: Code): Code {
  // deno-fmt-ignore
  return [
    BLOCK, VOID, LOOP, VOID,
    ...get(AT), ...get(end), I32_GE_U, BR_IF, 1,
    ...body,
    ...get(AT), ...i32(step), I32_ADD, ...set(AT),
    BR, 0, END, END,
  ];
}

const INVERT_CRC: Code = [...get(CRC), ...i32(-1), I32_XOR];

// deno-fmt-ignore
const UPDATE: Code = [
  2, 2, I32, 2, I64, // two groups of own locals: 2 x i32, 2 x i64
  ...get(AT), ...get(LENGTH), I32_ADD, ...set(END_AT),
  ...get(AT), ...get(LENGTH), ...i32(-16), I32_AND, I32_ADD, ...set(END_OF_16),
  ...INVERT_CRC, ...set(CRC),
  ...loopUntil(END_OF_16, 16, SIXTEEN_BYTES),
  ...loopUntil(END_AT, 1, ONE_BYTE),
  ...INVERT_CRC, END,
];

function section(id: number, content: Code): Code {
  return [id, ...unsignedLeb(content.length), ...content];
}

function exported(name: string, kind: number): Code {
  return [name.length, ...new TextEncoder().encode(name), kind, 0];
}

export function assembleCrcModule(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0, // magic, version
    ...section(1, [1, 0x60, 3, I32, I32, I32, 1, I32]), // one type: (i32, i32, i32) -> i32
    ...section(3, [1, 0]), // one function of that type
    ...section(5, [1, 0, 2]), // one memory of two pages
    ...section(7, [2, ...exported("memory", 2), ...exported("update", 0)]),
    ...section(10, [1, ...unsignedLeb(UPDATE.length), ...UPDATE]),
  ]);
}
