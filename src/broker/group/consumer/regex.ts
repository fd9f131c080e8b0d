/**
 * Regular expressions of subscriptions: RE2's syntax, matched against whole topic names in linear time. The
 * language's own engine may take for ever over a hostile expression, and stops the node with it.
 */
import { TOPIC_REGEX_STEPS_MAX } from "../../../lib/limits.ts";
import { parseRegex, type RegexNode, RegexProblem } from "./regex_parse.ts";

export interface TopicRegex {
  /** Steps of its program: what a name's character costs at most. */
  readonly size: number;
  matches(name: string): boolean;
}

export type RegexCompiled =
  | { readonly ok: true; readonly regex: TopicRegex }
  | { readonly ok: false; readonly message: string };

type Step =
  | { readonly kind: "match" }
  /** `table[code]` is 1 for the characters of the class. */
  | { readonly kind: "class"; readonly table: Uint8Array; readonly next: number }
  | { readonly kind: "assert"; readonly what: string; readonly next: number }
  | { readonly kind: "split"; a: number; b: number };

const MATCH = 0;
const PARTS_PER_STEP = 4;

/** Builds from the end to the start: each part knows what follows it. */
class Program {
  readonly steps: Step[] = [{ kind: "match" }];
  /** Parts that were built: repeated nothing takes no step, but time. */
  #parts = 0;

  add(step: Step): number {
    if (this.steps.length >= TOPIC_REGEX_STEPS_MAX) throw new RegexProblem("it is too large");
    this.steps.push(step);
    return this.steps.length - 1;
  }

  emit(node: RegexNode, next: number): number {
    this.#parts += 1;
    if (this.#parts > PARTS_PER_STEP * TOPIC_REGEX_STEPS_MAX) {
      throw new RegexProblem("it is too large");
    }
    switch (node.kind) {
      case "empty":
        return next;
      case "class":
        return this.add({ kind: "class", table: node.table, next });
      case "assert":
        return this.add({ kind: "assert", what: node.what, next });
      case "concat":
        return node.parts.reduceRight((after, part) => this.emit(part, after), next);
      case "either":
        return node.parts.map((part) => this.emit(part, next))
          .reduceRight((b, a) => this.add({ kind: "split", a, b }));
      case "repeat":
        return this.#repeat(node.part, node.min, node.max, next);
    }
  }

  #repeat(part: RegexNode, min: number, max: number | null, next: number): number {
    let after = next;
    if (max === null) {
      const loop: Step = { kind: "split", a: next, b: next };
      after = this.add(loop);
      loop.a = this.emit(part, after);
    } else {
      for (let i = min; i < max; i++) {
        after = this.add({ kind: "split", a: this.emit(part, after), b: next });
      }
    }
    for (let i = 0; i < min; i++) after = this.emit(part, after);
    return after;
  }
}

function isWordAt(name: string, at: number): boolean {
  return at >= 0 && at < name.length && /\w/.test(name[at]!);
}

function holdsAt(what: string, name: string, at: number): boolean {
  if (what === "begin") return at === 0;
  if (what === "end") return at === name.length;
  const isBoundary = isWordAt(name, at - 1) !== isWordAt(name, at);
  return what === "boundary" ? isBoundary : !isBoundary;
}

/** All states that the program may be in, side by side: no way back, so no explosion. */
class Matcher implements TopicRegex {
  readonly #steps: readonly Step[];
  readonly #start: number;
  /** The position + 1 at which a step was reached last. */
  readonly #seen: Uint32Array;
  readonly #stack: number[] = [];

  constructor(steps: readonly Step[], start: number) {
    this.#steps = steps;
    this.#start = start;
    this.#seen = new Uint32Array(steps.length);
  }

  get size(): number {
    return this.#steps.length;
  }

  matches(name: string): boolean {
    this.#seen.fill(0);
    let reached = this.#closure([this.#start], name, 0);
    for (let at = 0; at < name.length && reached.length > 0; at++) {
      const code = name.charCodeAt(at);
      const next: number[] = [];
      for (const pc of reached) {
        const step = this.#steps[pc]!;
        if (step.kind === "class" && step.table[code] === 1) next.push(step.next);
      }
      reached = this.#closure(next, name, at + 1);
    }
    return reached.includes(MATCH);
  }

  /** Steps that take a character, or the end, reached from `from` without taking one. */
  #closure(from: readonly number[], name: string, at: number): number[] {
    const reached: number[] = [];
    const stack = this.#stack;
    stack.push(...from);
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (this.#seen[pc] === at + 1) continue;
      this.#seen[pc] = at + 1;
      const step = this.#steps[pc]!;
      if (step.kind === "split") stack.push(step.a, step.b);
      else if (step.kind !== "assert") reached.push(pc);
      else if (holdsAt(step.what, name, at)) stack.push(step.next);
    }
    return reached;
  }
}

export function compileRegex(pattern: string): RegexCompiled {
  try {
    const program = new Program();
    const start = program.emit(parseRegex(pattern), MATCH);
    return { ok: true, regex: new Matcher(program.steps, start) };
  } catch (error) {
    if (!(error instanceof RegexProblem)) throw error;
    return { ok: false, message: error.message };
  }
}
