/**
 * The subscriptions of a cluster, in the metadata. One that this build cannot read is none for it: it is neither
 * shown nor delivered.
 *
 *     key     push-subscription/ID
 *     value   its JSON, as it was put, with what was left out
 */
import * as v from "valibot";
import { PUSH_SUBSCRIPTIONS_MAX } from "../../lib/limits.ts";
import { ProblemError } from "../problem.ts";
import type { MetadataTexts } from "../texts.ts";
import {
  type Subscription,
  subscription,
  type SubscriptionInput,
  subscriptionOf,
} from "./subscription.ts";

const PREFIX = "push-subscription/";

function read(id: string, text: string | null): Subscription | null {
  if (text === null) return null;
  const parsed = v.safeParse(subscription, JSON.parse(text));
  return parsed.success ? subscriptionOf(id, parsed.output) : null;
}

function conflict(detail: string): ProblemError {
  return new ProblemError({ status: 409, title: "Conflict", detail });
}

export class Subscriptions {
  readonly #texts: MetadataTexts;

  constructor(texts: MetadataTexts) {
    this.#texts = texts;
  }

  get(id: string): Subscription | null {
    return read(id, this.#texts.get(`${PREFIX}${id}`));
  }

  /** In order of their ids. */
  all(): readonly Subscription[] {
    const ids = this.#texts.keys(PREFIX).map((key) => key.slice(PREFIX.length)).toSorted();
    return ids.flatMap((id) => this.get(id) ?? []);
  }

  /** True when it is new. Throws ProblemError. */
  async put(id: string, input: SubscriptionInput): Promise<boolean> {
    const { group } = subscriptionOf(id, input);
    const others = this.all().filter((one) => one.id !== id);
    const other = others.find((one) => one.group === group);
    if (other !== undefined) {
      throw conflict(`Cannot use group ${group}: subscription ${other.id} moves its offsets`);
    }
    if (others.length >= PUSH_SUBSCRIPTIONS_MAX) {
      throw conflict(`Cannot keep more than ${PUSH_SUBSCRIPTIONS_MAX} subscriptions`);
    }
    let isNew = true;
    await this.#texts.change(`${PREFIX}${id}`, (text) => {
      isNew = text === null;
      return JSON.stringify(input);
    });
    return isNew;
  }

  /** Null when there is none. */
  async setPaused(id: string, paused: boolean): Promise<Subscription | null> {
    let changed: Subscription | null = null;
    await this.#texts.change(`${PREFIX}${id}`, (text) => {
      const known = read(id, text);
      changed = known === null ? null : { ...known, paused };
      if (changed === null) return null;
      const { id: _, ...rest } = changed;
      return JSON.stringify(rest);
    });
    return changed;
  }

  async delete(id: string): Promise<boolean> {
    let isKnown = false;
    await this.#texts.change(`${PREFIX}${id}`, (text) => {
      isKnown = text !== null;
      return null;
    });
    return isKnown;
  }
}
