/** Words of a command that speaks to a broker: which there are, what they mean, what is wrong with them. Pure. */
import { type Address, parseAddresses } from "../client/address.ts";
import { parsePlace, type Place, PLACE_FORMS } from "../client/place.ts";

export interface OptionSpec {
  /** What stands for its value in the help; null for a switch. */
  readonly value: string | null;
  readonly help: string;
  readonly fallback?: string;
  readonly short?: string;
  readonly repeats?: true;
}

export interface Syntax {
  /** The words that choose it: `topic create`. */
  readonly name: string;
  /** As in the help: `TOPIC...`. */
  readonly operands: string;
  readonly operandsMin: number;
  readonly operandsMax: number;
  readonly help: string;
  /** Names of its own; the common ones come on top. */
  readonly options: Readonly<Record<string, OptionSpec>>;
}

export const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  "bootstrap": {
    value: "HOST:PORT,...",
    short: "b",
    fallback: "127.0.0.1:9092",
    help: "brokers to begin with",
  },
  "timeout": {
    value: "SECONDS",
    fallback: "30",
    help: "for each operation with all its repetitions",
  },
  "json": { value: null, help: "one JSON object instead of lines" },
  "help": { value: null, short: "h", help: "what the command knows" },
};

export class WordFault extends Error {
  override readonly name = "WordFault";
}

const TIMEOUT_SECONDS_MAX = 86_400;

/** The words after the command's name, taken apart; every accessor throws WordFault. */
export class Words {
  readonly operands: readonly string[];
  readonly #values: ReadonlyMap<string, readonly string[]>;
  readonly #specs: Readonly<Record<string, OptionSpec>>;

  constructor(
    operands: readonly string[],
    values: ReadonlyMap<string, readonly string[]>,
    specs: Readonly<Record<string, OptionSpec>>,
  ) {
    this.operands = operands;
    this.#values = values;
    this.#specs = specs;
  }

  isOn(name: string): boolean {
    return this.#values.has(name);
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** Null when it is neither given nor has a default. */
  text(name: string): string | null {
    return this.#values.get(name)?.[0] ?? this.#specs[name]?.fallback ?? null;
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === null) throw new WordFault(`--${name} is missing`);
    return value;
  }

  oneOf<const T extends string>(name: string, allowed: readonly T[]): T {
    const value = this.required(name);
    const found = allowed.find((one) => one === value);
    if (found !== undefined) return found;
    throw new WordFault(`--${name} ${value}: allowed are ${allowed.join(", ")}`);
  }

  number(name: string, min: number, max: number): number | null {
    const value = this.text(name);
    if (value === null) return null;
    const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : NaN;
    if (number >= min && number <= max) return number;
    throw new WordFault(`--${name} ${value}: allowed is a number from ${min} to ${max}`);
  }

  integer(name: string, min: number, max: number): number | null {
    const number = this.number(name, min, max);
    if (number === null || Number.isInteger(number)) return number;
    throw new WordFault(`--${name} ${number}: allowed is a whole number from ${min} to ${max}`);
  }

  /** Partition numbers: repeated, or with commas between. */
  partitions(name: string): number[] {
    return this.all(name).flatMap((text) => parsePartitions(text, `--${name}`));
  }

  place(name: string): Place {
    const value = this.required(name);
    const place = parsePlace(value);
    if (place !== null) return place;
    throw new WordFault(`--${name} ${value}: allowed are ${PLACE_FORMS}`);
  }

  get bootstrap(): readonly Address[] {
    const value = this.required("bootstrap");
    const addresses = parseAddresses(value);
    if (addresses !== null) return addresses;
    throw new WordFault(`--bootstrap ${value}: allowed are HOST:PORT, with commas between several`);
  }

  get timeoutMs(): number {
    return this.number("timeout", 0.1, TIMEOUT_SECONDS_MAX)! * 1000;
  }

  get json(): boolean {
    return this.isOn("json");
  }
}

export function parsePartitions(text: string, where: string): number[] {
  return text.split(",").map((part) => {
    const value = /^\d+$/.test(part) ? Number(part) : NaN;
    if (value < 2 ** 31) return value;
    throw new WordFault(`${where} ${text}: allowed are partition numbers, with commas between`);
  });
}

/** A tab is hard to type. */
export function separatorOf(text: string): string {
  return text.replaceAll("\\t", "\t");
}

/** `NAME=VALUE`; the value may be empty and may hold equals signs. */
export function parsePair(text: string, where: string): [name: string, value: string] {
  const equals = text.indexOf("=");
  if (equals < 1) throw new WordFault(`${where} ${text}: allowed is NAME=VALUE`);
  return [text.slice(0, equals), text.slice(equals + 1)];
}

function optionName(word: string, specs: Readonly<Record<string, OptionSpec>>): string {
  if (word.startsWith("--")) return word.slice(2).split("=", 1)[0]!;
  return Object.keys(specs).find((name) => specs[name]!.short === word[1]) ?? word;
}

/** The value that is joined to the option's word; null when there is none. */
function joinedValue(word: string): string | null {
  if (!word.startsWith("--")) return word.length > 2 ? word.slice(2) : null;
  const equals = word.indexOf("=");
  return equals < 0 ? null : word.slice(equals + 1);
}

function isOption(word: string): boolean {
  return word.length > 1 && word.startsWith("-");
}

/** Throws WordFault, which says what is wrong. A value may begin with a dash; with two behind `=` only. */
export function parseWords(syntax: Syntax, words: readonly string[]): Words {
  const specs = { ...syntax.options, ...COMMON_OPTIONS };
  const operands: string[] = [];
  const values = new Map<string, string[]>();
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (word === "--") {
      operands.push(...words.slice(i + 1));
      break;
    }
    if (!isOption(word)) {
      operands.push(word);
      continue;
    }
    const name = optionName(word, specs);
    const spec = Object.hasOwn(specs, name) ? specs[name] : undefined;
    if (spec === undefined) throw new WordFault(`${word.split("=", 1)[0]}: unknown option`);
    const joined = joinedValue(word);
    if (spec.value === null && joined !== null) throw new WordFault(`--${name} takes no value`);
    const value = spec.value === null ? "" : joined ?? words[++i];
    if (value === undefined || (joined === null && value.startsWith("--"))) {
      throw new WordFault(`--${name}: no value given`);
    }
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else if (spec.repeats === true) known.push(value);
    else throw new WordFault(`--${name}: given twice`);
  }
  if (!values.has("help")) checkOperands(syntax, operands);
  return new Words(operands, values, specs);
}

function checkOperands(syntax: Syntax, operands: readonly string[]): void {
  if (operands.length < syntax.operandsMin) {
    throw new WordFault(`${syntax.operands} is missing`);
  }
  const extra = operands[syntax.operandsMax];
  if (extra !== undefined) throw new WordFault(`${JSON.stringify(extra)}: one word too many`);
}
