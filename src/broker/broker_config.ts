/** The broker's properties after checking: what was set, and defaults for the rest. */
import { assert } from "../lib/assert.ts";
import { BROKER_PROPERTIES } from "./broker_properties.ts";
import { checkProperty, numberOf, type Property } from "./property.ts";

/** Settings from one source. */
export interface ConfigLayer {
  readonly source: "dynamicBroker" | "dynamicDefault" | "staticBroker";
  /** In canonical form. */
  readonly get: (name: string) => string | undefined;
}

export interface BrokerConfig {
  /** Only what was set at the start, in canonical form. */
  readonly explicit: ReadonlyMap<string, string>;
  /** What counts, most specific first; defaults stand behind all of them. */
  readonly layers: readonly ConfigLayer[];
  /** The effective text of a known property. */
  text(name: string): string;
  integer(name: string): number;
  flag(name: string): boolean;
  /** Called after each change of a setting; returns the unsubscribe. */
  onChange(listener: () => void): () => void;
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

/** A configuration whose readers always see the newest of its layers. */
export function layeredConfig(
  explicit: ReadonlyMap<string, string>,
  layers: readonly ConfigLayer[],
  onChange: BrokerConfig["onChange"],
): BrokerConfig {
  const text = (name: string): string => {
    for (const layer of layers) {
      const value = layer.get(name);
      if (value !== undefined) return value;
    }
    return propertyOf(name).fallback;
  };
  return {
    explicit,
    layers,
    text,
    integer: (name) => numberOf(text(name)),
    flag: (name) => text(name) === "true",
    onChange,
  };
}

function staticConfig(explicit: ReadonlyMap<string, string>): BrokerConfig {
  const layer: ConfigLayer = { source: "staticBroker", get: (name) => explicit.get(name) };
  return layeredConfig(explicit, [layer], () => () => {});
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
  return errors.length > 0 ? { ok: false, errors } : { ok: true, config: staticConfig(explicit) };
}
