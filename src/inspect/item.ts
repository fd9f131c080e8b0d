/** What a decoder tells of an object: one item per part, as a line of text or as a JSON value. */

export type FieldValue =
  | string
  | number
  | boolean
  | null
  | readonly FieldValue[]
  | { readonly [name: string]: FieldValue };

export type Fields = { readonly [name: string]: FieldValue };

export interface Item {
  /** `header`, `record`, `block`, ... */
  readonly part: string;
  /** Where it stands in the object; null for what has no place of its own. */
  readonly at: number | null;
  readonly fields: Fields;
}

export function item(part: string, at: number | null, fields: Fields): Item {
  return { part, at, fields };
}

function isFields(value: FieldValue): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function pairs(fields: Fields, prefix: string): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (isFields(value)) return pairs(value, `${prefix}${name}.`);
    const isPlain = typeof value === "string" && /^[^\s"=]+$/.test(value);
    return `${prefix}${name}=${isPlain ? value : JSON.stringify(value)}`;
  });
}

export function itemLine({ part, at, fields }: Item): string {
  const place = at === null ? "" : `@${at} `;
  return `${part.padEnd(9)} ${place}${pairs(fields, "").join(" ")}`.trimEnd();
}

export function itemJson({ part, at, fields }: Item): string {
  return JSON.stringify(at === null ? { part, ...fields } : { part, at, ...fields });
}
