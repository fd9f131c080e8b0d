/** All subscriptions of a node: delivers those whose groups it has, and answers for them. */
import { isFault, messageOf } from "../../lib/errors.ts";
import { PUSH_BODIES_BYTES_MAX, PUSH_REPEAT_MS_MIN, PUSH_REQUESTS_MAX } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { OutboundAnswer } from "../../env/outbound_http.ts";
import { Deliverer, type DelivererStatus } from "./deliverer.ts";
import { testDelivery } from "./delivery.ts";
import { PushKeys } from "./keys.ts";
import type { PushServices } from "./push_port.ts";
import { Sender } from "./sender.ts";
import type { Subscription } from "./subscription.ts";
import { Subscriptions } from "./subscriptions.ts";
import { type TargetFound, targetOf } from "./target.ts";

export type PushState =
  | "delivering"
  | "paused"
  /** Another node has its group, or this one cannot tell yet. */
  | "elsewhere";

export interface PushShown {
  readonly state: PushState;
  readonly status: DelivererStatus | null;
}

const TEST_BYTES = 4_096;

interface Running {
  readonly text: string;
  readonly deliverer: Deliverer;
}

export class Push {
  readonly subscriptions: Subscriptions;
  readonly keys: PushKeys;
  readonly #services: PushServices;
  readonly #sender: Sender;
  readonly #bodies = new Semaphore(PUSH_BODIES_BYTES_MAX);
  readonly #requests = new Semaphore(PUSH_REQUESTS_MAX);
  readonly #running = new Map<string, Running>();
  readonly #stop = new AbortController();
  readonly #unsubscribe: readonly (() => void)[];
  #isReviewing = false;
  #isStale = false;
  #cancel: () => void = () => {};

  constructor(services: PushServices) {
    const { texts, env, outbound, rules, sign } = services;
    this.#services = services;
    this.subscriptions = new Subscriptions(texts);
    this.keys = new PushKeys(texts, env);
    this.#sender = new Sender({
      env,
      outbound,
      rules,
      sign,
      keys: this.keys,
      bodies: this.#bodies,
      requests: this.#requests,
    });
    this.#unsubscribe = [
      texts.onChange(() => this.#review()),
      env.metrics.onRender((gauge) => {
        gauge("skerry_push_subscriptions", this.#running.size);
        gauge("skerry_push_bodies_bytes", this.#bodies.used);
        const held = [...this.#running.values()].map(({ deliverer }) => deliverer.status());
        gauge("skerry_push_held_bytes", held.reduce((sum, { heldBytes }) => sum + heldBytes, 0));
      }),
    ];
    this.#review();
  }

  get canDeliver(): boolean {
    return this.#services.outbound !== null;
  }

  targetOf(url: string): TargetFound {
    return targetOf(url, this.#services.rules());
  }

  shown({ id, paused }: Subscription): PushShown {
    const status = this.#running.get(id)?.deliverer.status() ?? null;
    return { state: paused ? "paused" : status === null ? "elsewhere" : "delivering", status };
  }

  /** One delivery of nothing; throws FaultError `aborted` with the client. */
  async test(subscription: Subscription, client: AbortSignal): Promise<OutboundAnswer> {
    const signal = AbortSignal.any([client, this.#stop.signal]);
    return await this.#sender.send(
      subscription,
      TEST_BYTES,
      () => testDelivery(subscription),
      signal,
    );
  }

  /** What is under way is cut off; it comes again where the next one goes on. May be called again. */
  close(): void {
    this.#stop.abort();
    this.#cancel();
    for (const stop of this.#unsubscribe) stop();
    for (const { deliverer } of this.#running.values()) deliverer.close();
    this.#running.clear();
  }

  /** One look at a time; what changes meanwhile is looked at again. */
  #review(): void {
    this.#isStale = true;
    if (this.#isReviewing || this.#stop.signal.aborted || !this.canDeliver) return;
    this.#isReviewing = true;
    void this.#reviewAll().then((isDone) => {
      this.#isReviewing = false;
      if (this.#stop.signal.aborted) return;
      // Something changed between the last look and now.
      if (isDone) return this.#isStale ? this.#review() : undefined;
      this.#cancel = this.#services.env.clock.after(PUSH_REPEAT_MS_MIN, () => this.#review());
    });
  }

  /** False when it is to be done again later. */
  async #reviewAll(): Promise<boolean> {
    const { env } = this.#services;
    try {
      while (this.#isStale && !this.#stop.signal.aborted) {
        this.#isStale = false;
        await this.#follow();
      }
      return true;
    } catch (error) {
      const level = isFault(error) ? "warn" : "error";
      env.log.log(level, "push-review-failed", { error: messageOf(error) });
      return false;
    }
  }

  async #follow(): Promise<void> {
    const wanted = new Map<string, Subscription>();
    for (const one of this.subscriptions.all()) {
      if (!one.paused && await this.#services.groups.leads(one.group)) wanted.set(one.id, one);
    }
    if (this.#stop.signal.aborted) return;
    for (const [id, { text, deliverer }] of this.#running) {
      const one = wanted.get(id);
      if (one !== undefined && JSON.stringify(one) === text) continue;
      deliverer.close();
      this.#running.delete(id);
    }
    for (const [id, one] of wanted) {
      if (this.#running.has(id)) continue;
      const deliverer = new Deliverer(one, this.#services, this.#sender);
      this.#running.set(id, { text: JSON.stringify(one), deliverer });
      deliverer.start();
    }
  }
}
