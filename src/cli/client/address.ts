/** Host and port of a broker, from text and to text. Pure. */

export interface Address {
  readonly host: string;
  readonly port: number;
}

const PORT = 9092;
const PORT_MAX = 65_535;
/** `host`, `host:port`, `[v6]` or `[v6]:port`. */
const FORM = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:,[\]]+))(?::(\d{1,5}))?$/;

export function addressText({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Null when it is none. */
function parseAddress(text: string): Address | null {
  const found = FORM.exec(text);
  const host = found?.[1] ?? found?.[2];
  if (host === undefined) return null;
  const port = Number(found?.[3] ?? PORT);
  return port >= 1 && port <= PORT_MAX ? { host, port } : null;
}

/** Addresses with commas between; null when one of them is none. */
export function parseAddresses(text: string): Address[] | null {
  const all = text.split(",").map((one) => parseAddress(one.trim()));
  return all.includes(null) ? null : all.filter((one) => one !== null);
}
