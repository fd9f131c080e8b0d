/**
 * Topics that regular expressions mean now. Resolved in slices before a decision needs them, so that many
 * topics hold nothing up; internal topics are never meant. Kept while topics stay as they are.
 */
import { type Clock, sleep } from "../../../env/clock.ts";
import { TOPIC_REGEX_SLICE_STEPS, TOPIC_REGEXES_KEPT } from "../../../lib/limits.ts";
import { Lru } from "../../../lib/lru.ts";
import { SingleFlight } from "../../../lib/single_flight.ts";
import type { Resolved, TopicView } from "./group.ts";
import { compileRegex, type TopicRegex } from "./regex.ts";

export class RegexTopics {
  readonly #clock: Clock;
  readonly #topics: TopicView;
  readonly #resolved = new Lru<string, Resolved>(TOPIC_REGEXES_KEPT, () => 1);
  readonly #running = new SingleFlight<string, Resolved>();

  constructor(clock: Clock, topics: TopicView) {
    this.#clock = clock;
    this.#topics = topics;
  }

  /** The newest that is known; `resolve` makes it current. */
  known(pattern: string): Resolved | undefined {
    return this.#resolved.get(pattern);
  }

  isCurrent(pattern: string): boolean {
    return this.#resolved.peek(pattern)?.version === this.#topics.version;
  }

  /** What is wrong with an expression; null if nothing. */
  async resolve(pattern: string): Promise<string | null> {
    if (this.isCurrent(pattern)) return null;
    const compiled = compileRegex(pattern);
    if (!compiled.ok) return compiled.message;
    const resolved = await this.#running.run(pattern, () => this.#match(compiled.regex));
    this.#resolved.set(pattern, resolved);
    return null;
  }

  async #match(regex: TopicRegex): Promise<Resolved> {
    const { version } = this.#topics;
    const topics: string[] = [];
    let steps = 0;
    for (const name of Array.from(this.#topics.names())) {
      if (regex.matches(name)) topics.push(name);
      steps += name.length * regex.size;
      if (steps < TOPIC_REGEX_SLICE_STEPS) continue;
      steps = 0;
      await sleep(this.#clock, 0);
    }
    return { topics: topics.toSorted(), version, resolvedAtMs: this.#clock.nowMs() };
  }
}
