/**
 * Internet addresses as text, and which of them lie in the public part of the network. Who sends to places that
 * others name must not be talked into sending to its own neighbours.
 */

export type Reach =
  /** Somebody else's host, as far as the address tells. */
  | "public"
  | "loopback"
  /** Private, link-local, shared, reserved, a service of the host's own cloud, or no address at all. */
  | "closed";

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const GROUPS = 8;

/** Only dots and decimals without leading zeros: other spellings mean different things to different readers. */
export function parseV4(text: string): Uint8Array | null {
  const parts = V4.exec(text)?.slice(1);
  if (parts === undefined) return null;
  const bytes = Uint8Array.from(parts, Number);
  return parts.every((part, i) => String(bytes[i]) === part) ? bytes : null;
}

/** Groups of 16 bits; a last part with dots counts as two. Null when it is none. */
function groupsOf(text: string): number[] | null {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    if (GROUP.test(part)) groups.push(Number.parseInt(part, 16));
    else {
      const v4 = i === parts.length - 1 ? parseV4(part) : null;
      if (v4 === null) return null;
      groups.push(v4[0]! * 256 + v4[1]!, v4[2]! * 256 + v4[3]!);
    }
  }
  return groups;
}

/** RFC 4291, without zones: they name interfaces of a host, never a public address. */
export function parseV6(text: string): Uint8Array | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [head, tail] = halves.map(groupsOf);
  if (head == null || (halves.length === 2 && tail == null)) return null;
  const missing = GROUPS - head.length - (tail?.length ?? 0);
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  const groups = [...head, ...Array.from({ length: missing }, () => 0), ...tail ?? []];
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

type Prefix = readonly [base: Uint8Array, bits: number];

function prefix(text: string): Prefix {
  const [address = "", bits] = text.split("/");
  const base = parseV4(address) ?? parseV6(address);
  return [base!, Number(bits)];
}

function isIn(bytes: Uint8Array, [base, bits]: Prefix): boolean {
  if (bytes.length !== base.length) return false;
  const whole = bits >> 3;
  for (let i = 0; i < whole; i++) if (bytes[i] !== base[i]) return false;
  const rest = bits & 7;
  return rest === 0 || (bytes[whole]! >> (8 - rest)) === (base[whole]! >> (8 - rest));
}

/** IANA's registry of special addresses, multicast, and what clouds answer their own guests at. */
const V4_CLOSED = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
  // The host of Azure's guests: a public number that is never the public's.
  "168.63.129.16/32",
].map(prefix);
const V4_LOOPBACK = prefix("127.0.0.0/8");

/** All that is given out lies here; private, link-local and multicast addresses lie outside of it. */
const V6_GLOBAL = prefix("2000::/3");
const V6_CLOSED = ["2001::/23", "2001:db8::/32", "3fff::/20"].map(prefix);
const V6_LOOPBACK = prefix("::1/128");
/** They carry an address of version 4, at the byte behind them, and lead to it. */
const V6_CARRIERS = [
  [prefix("::ffff:0:0/96"), 12],
  [prefix("64:ff9b::/96"), 12],
  [prefix("2002::/16"), 2],
] as const;

function reachOfV4(bytes: Uint8Array): Reach {
  if (isIn(bytes, V4_LOOPBACK)) return "loopback";
  return V4_CLOSED.some((one) => isIn(bytes, one)) ? "closed" : "public";
}

function reachOfV6(bytes: Uint8Array): Reach {
  if (isIn(bytes, V6_LOOPBACK)) return "loopback";
  for (const [carrier, at] of V6_CARRIERS) {
    if (isIn(bytes, carrier)) return reachOfV4(bytes.subarray(at, at + 4));
  }
  const isPublic = isIn(bytes, V6_GLOBAL) && !V6_CLOSED.some((one) => isIn(bytes, one));
  return isPublic ? "public" : "closed";
}

/** Of an address without brackets; what is none is closed. */
export function reachOf(address: string): Reach {
  const v4 = parseV4(address);
  if (v4 !== null) return reachOfV4(v4);
  const v6 = parseV6(address);
  return v6 === null ? "closed" : reachOfV6(v6);
}

export function isAddress(text: string): boolean {
  return parseV4(text) !== null || parseV6(text) !== null;
}
