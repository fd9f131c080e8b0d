/**
 * RE2's syntax as a tree. Topic names are ASCII, so a class is a table of 128 characters. What RE2 has not,
 * such as back references and looking around, is refused; greed and the names of groups mean nothing here.
 */
import { TOPIC_REGEX_CHARS_MAX, TOPIC_REGEX_REPEAT_MAX } from "../../../lib/limits.ts";
import { classEscape, folded, posixClass, range, tableOf } from "./regex_class.ts";

export type RegexNode =
  | { readonly kind: "empty" }
  | { readonly kind: "class"; readonly table: Uint8Array }
  | { readonly kind: "assert"; readonly what: "begin" | "end" | "boundary" | "no-boundary" }
  | { readonly kind: "concat" | "either"; readonly parts: readonly RegexNode[] }
  | {
    readonly kind: "repeat";
    readonly part: RegexNode;
    readonly min: number;
    readonly max: number | null;
  };

/** Says what is wrong with an expression. */
export class RegexProblem extends Error {}

const DEPTH_MAX = 200;
const ESCAPED: Readonly<Record<string, number>> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 };
const ASSERTIONS: Readonly<Record<string, RegexNode>> = {
  A: { kind: "assert", what: "begin" },
  z: { kind: "assert", what: "end" },
  b: { kind: "assert", what: "boundary" },
  B: { kind: "assert", what: "no-boundary" },
};
const EMPTY: RegexNode = { kind: "empty" };

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #foldCase = false;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): RegexNode {
    const node = this.#either();
    if (this.#at < this.#text.length) throw new RegexProblem("unexpected )");
    return node;
  }

  /** Takes the text if it is next. */
  #eat(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #eatMatch(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.#at = pattern.lastIndex;
    return match;
  }

  #next(): string {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    this.#at += char.length;
    return char;
  }

  get #isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  #either(): RegexNode {
    const parts = [this.#concat()];
    while (this.#eat("|")) parts.push(this.#concat());
    return parts.length === 1 ? parts[0]! : { kind: "either", parts };
  }

  #concat(): RegexNode {
    const parts: RegexNode[] = [];
    while (!this.#isAtEnd && !"|)".includes(this.#text[this.#at]!)) {
      if (this.#eat("\\Q")) parts.push(...this.#quoted());
      else parts.push(this.#repeated());
    }
    return { kind: "concat", parts };
  }

  #quoted(): RegexNode[] {
    const end = this.#text.indexOf("\\E", this.#at);
    const text = this.#text.slice(this.#at, end < 0 ? undefined : end);
    this.#at += text.length + (end < 0 ? 0 : 2);
    return Array.from(text, (char) => this.#literal(char.codePointAt(0)!));
  }

  #repeated(): RegexNode {
    const atom = this.#atom();
    const counts = this.#counts();
    if (counts === null) return atom;
    this.#eat("?");
    if (this.#counts() !== null) throw new RegexProblem("a repetition of a repetition");
    return { kind: "repeat", part: atom, ...counts };
  }

  #counts(): { readonly min: number; readonly max: number | null } | null {
    if (this.#eat("*")) return { min: 0, max: null };
    if (this.#eat("+")) return { min: 1, max: null };
    if (this.#eat("?")) return { min: 0, max: 1 };
    const match = this.#eatMatch(/\{(\d+)(,(\d*))?\}/y);
    if (match === null) return null;
    const min = Number(match[1]);
    const max = match[2] === undefined ? min : match[3] === "" ? null : Number(match[3]);
    if (
      min > TOPIC_REGEX_REPEAT_MAX || (max !== null && (max > TOPIC_REGEX_REPEAT_MAX || max < min))
    ) {
      throw new RegexProblem(`invalid repeat count ${match[0]}`);
    }
    return { min, max };
  }

  #literal(code: number): RegexNode {
    return this.#class(range(code, code));
  }

  #class(table: Uint8Array): RegexNode {
    return { kind: "class", table: this.#foldCase ? folded(table) : table };
  }

  #atom(): RegexNode {
    const char = this.#next();
    switch (char) {
      case "(":
        return this.#group();
      case "[":
        return this.#bracket();
      case ".":
        return this.#class(tableOf((code) => code !== 10));
      case "^":
        return { kind: "assert", what: "begin" };
      case "$":
        return { kind: "assert", what: "end" };
      case "\\":
        return this.#escape();
      case "*":
      case "+":
      case "?":
        throw new RegexProblem(`nothing to repeat before ${char}`);
      default:
        return this.#literal(char.codePointAt(0)!);
    }
  }

  #group(): RegexNode {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw new RegexProblem("groups too deep");
    const outerFold = this.#foldCase;
    const flags = this.#eatMatch(/\?([imsU]*)(?:-([imsU]+))?([:)])/y);
    if (flags !== null) {
      if (flags[1]!.includes("i")) this.#foldCase = true;
      if (flags[2]?.includes("i") === true) this.#foldCase = false;
      if (flags[3] === ")") {
        if (flags[1] === "" && flags[2] === undefined) {
          throw new RegexProblem("missing argument: (?)");
        }
        this.#depth -= 1;
        return EMPTY;
      }
    } else if (this.#eatMatch(/\?P?<\w+>/y) === null && this.#eat("?")) {
      throw new RegexProblem("unknown kind of group");
    }
    const node = this.#either();
    if (!this.#eat(")")) throw new RegexProblem("missing )");
    this.#foldCase = outerFold;
    this.#depth -= 1;
    return node;
  }

  #escape(): RegexNode {
    const assertion = ASSERTIONS[this.#text[this.#at] ?? ""];
    if (assertion !== undefined) {
      this.#at += 1;
      return assertion;
    }
    return this.#class(this.#escapedTable());
  }

  /** Behind a backslash: a class, or one character. */
  #escapedTable(): Uint8Array {
    if (this.#isAtEnd) throw new RegexProblem("trailing \\");
    const unicode = this.#eatMatch(/([pP])(?:\{(\^?)(\w+)\}|(\w))/y);
    const named = unicode === null
      ? this.#eatMatch(/[dDwWsS]/y)?.[0]
      : `${(unicode[1] === "P") !== (unicode[2] === "^") ? "P" : "p"}${unicode[3] ?? unicode[4]}`;
    if (named !== undefined) {
      const table = classEscape(named);
      if (table === null) throw new RegexProblem(`unknown class ${named}`);
      return table;
    }
    const code = this.#escapedCode();
    return range(code, code);
  }

  #escapedCode(): number {
    const hex = this.#eatMatch(/x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\})/y);
    if (hex !== null) return parseInt(hex[1] ?? hex[2]!, 16);
    const octal = this.#eatMatch(/0[0-7]{0,2}|[1-7][0-7]{2}/y);
    if (octal !== null) return parseInt(octal[0], 8);
    const char = this.#next();
    const code = ESCAPED[char];
    if (code !== undefined) return code;
    if (/[0-9A-Za-z]/.test(char)) throw new RegexProblem(`unknown escape \\${char}`);
    return char.codePointAt(0)!;
  }

  #bracket(): RegexNode {
    const isNegated = this.#eat("^");
    const table = new Uint8Array(128);
    for (let isFirst = true; isFirst || !this.#eat("]"); isFirst = false) {
      if (this.#isAtEnd) throw new RegexProblem("missing ]");
      this.#bracketItem(table);
    }
    const all = this.#foldCase ? folded(table) : table;
    return { kind: "class", table: isNegated ? tableOf((code) => all[code] === 0) : all };
  }

  #bracketItem(table: Uint8Array): void {
    const posix = this.#eatMatch(/\[:(\^?)(\w+):\]/y);
    const items = posix === null ? this.#bracketEnd() : posixClass(posix[2]!, posix[1] === "^");
    if (items === null) throw new RegexProblem(`unknown class ${posix![0]}`);
    if (typeof items !== "number") return items.forEach((bit, code) => void (table[code]! |= bit));
    let last = items;
    if (this.#eatMatch(/-(?!\])/y) !== null) {
      const end = this.#isAtEnd ? null : this.#bracketEnd();
      if (typeof end !== "number" || end < items) throw new RegexProblem("invalid range in [ ]");
      last = end;
    }
    range(items, last).forEach((bit, code) => void (table[code]! |= bit));
  }

  /** One character of a class, or a class within it. */
  #bracketEnd(): number | Uint8Array {
    if (!this.#eat("\\")) return this.#next().codePointAt(0)!;
    if (/[dDwWsSpP]/.test(this.#text[this.#at] ?? "")) return this.#escapedTable();
    if (this.#isAtEnd) throw new RegexProblem("trailing \\");
    return this.#escapedCode();
  }
}

/** Throws RegexProblem. */
export function parseRegex(pattern: string): RegexNode {
  if (pattern.length > TOPIC_REGEX_CHARS_MAX) throw new RegexProblem("it is too long");
  return new Parser(pattern).parse();
}
