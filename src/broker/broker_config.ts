/** The broker's properties after checking: what was set, and defaults for the rest. */
import { assert } from "../lib/assert.ts";
import { BROKER_PROPERTIES } from "./broker_properties.ts";
import { checkProperty, numberOf, type Property } from "./property.ts";

export interface BrokerConfig {
  /** Only what was set, in canonical form. */
  readonly explicit: ReadonlyMap<string, string>;
  /** The effective text of a known property. */
  text(name: string): string;
  integer(name: string): number;
  flag(name: string): boolean;
}

export type BrokerConfigParsed =
  | { readonly ok: true; readonly config: BrokerConfig }
  /** One line each, with the key, the value and what is allowed. */
  | { readonly ok: false; readonly errors: readonly string[] };

function propertyOf(name: string): Property {
  const property = BROKER_PROPERTIES.get(name);
  assert(property !== undefined, `${name} is not in the table of broker properties`);
  return property;
}

function configOf(explicit: ReadonlyMap<string, string>): BrokerConfig {
  const text = (name: string): string => explicit.get(name) ?? propertyOf(name).fallback;
  return {
    explicit,
    text,
    integer: (name) => numberOf(text(name)),
    flag: (name) => text(name) === "true",
  };
}

export function parseBrokerConfig(
  properties: Readonly<Record<string, string>>,
): BrokerConfigParsed {
  const explicit = new Map<string, string>();
  const errors: string[] = [];
  for (const [name, value] of Object.entries(properties)) {
    const property = BROKER_PROPERTIES.get(name);
    if (property === undefined) {
      errors.push(`Cannot use ${name} = ${value}: unknown property`);
      continue;
    }
    const checked = checkProperty(property, value);
    if (checked.ok) explicit.set(name, checked.value);
    else errors.push(checked.message);
  }
  return errors.length > 0 ? { ok: false, errors } : { ok: true, config: configOf(explicit) };
}
