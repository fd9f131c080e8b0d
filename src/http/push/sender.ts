/** Sends deliveries: signed, within their time, to addresses that may be connected to, within the node's memory. */
import type { Env } from "../../env/env.ts";
import type { OutboundAnswer, OutboundHttp } from "../../env/outbound_http.ts";
import { PUSH_ANSWER_BYTES_MAX } from "../../lib/limits.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import { ProblemError } from "../problem.ts";
import type { Delivery } from "./delivery.ts";
import type { PushKeys } from "./keys.ts";
import type { Sign } from "./signature.ts";
import type { Subscription } from "./subscription.ts";
import { mayConnectTo, targetOf, type TargetRules } from "./target.ts";

export interface SenderOptions {
  readonly env: Env;
  readonly outbound: OutboundHttp | null;
  readonly keys: PushKeys;
  readonly sign: Sign;
  readonly rules: () => TargetRules;
  /** Bytes of all bodies under way on the node. */
  readonly bodies: Semaphore;
  /** How many may be under way at once, of all subscriptions. */
  readonly requests: Semaphore;
}

const NO_OUTBOUND: OutboundAnswer = {
  ok: false,
  kind: "refused",
  reason: "this broker is embedded without outbound HTTP",
};

export class Sender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Makes the body once there is room for it. Throws only FaultError `aborted`. */
  async send(
    subscription: Subscription,
    bytes: number,
    make: () => Delivery,
    signal: AbortSignal,
  ): Promise<OutboundAnswer> {
    const { requests, bodies } = this.#options;
    await requests.acquire(1, signal);
    try {
      await bodies.acquire(bytes, signal);
      try {
        return await this.#measured(subscription, make, signal);
      } finally {
        bodies.release(bytes);
      }
    } finally {
      requests.release(1);
    }
  }

  async #measured(
    subscription: Subscription,
    make: () => Delivery,
    signal: AbortSignal,
  ): Promise<OutboundAnswer> {
    const { env } = this.#options;
    const startedMs = env.clock.monotonicMs();
    const answer = await this.#request(subscription, make(), signal);
    if (!answer.ok && answer.kind === "aborted") return answer;
    const outcome = answer.ok ? `${Math.floor(answer.status / 100)}xx` : answer.kind;
    env.metrics.count("skerry_push_requests_total", { outcome });
    const tookMs = env.clock.monotonicMs() - startedMs;
    env.metrics.observe("skerry_push_request_seconds", tookMs / 1000);
    return answer;
  }

  async #request(
    subscription: Subscription,
    delivery: Delivery,
    signal: AbortSignal,
  ): Promise<OutboundAnswer> {
    const { outbound, rules } = this.#options;
    if (outbound === null) return NO_OUTBOUND;
    const target = targetOf(subscription.url, rules());
    if (!target.ok) return { ok: false, kind: "refused", reason: target.detail };
    const signature = await this.#sign(subscription, delivery);
    if (typeof signature !== "string") return signature;
    return await this.#within(subscription.timeoutMs, signal, (until) =>
      outbound.send({
        url: target.url,
        method: "POST",
        headers: { ...delivery.headers, "skerry-signature": signature, "user-agent": "skerry" },
        body: delivery.body,
        mayConnectTo: (address) => mayConnectTo(address, rules()),
        answerBytesMax: PUSH_ANSWER_BYTES_MAX,
        signal: until,
      }));
  }

  async #sign(
    { id, url }: Subscription,
    { body, id: delivery }: Delivery,
  ): Promise<string | OutboundAnswer> {
    const { keys, env, sign } = this.#options;
    try {
      const nowMs = env.clock.nowMs();
      const signed = { audience: url, subscription: id, delivery, nowMs };
      return await sign(await keys.current(), body, signed);
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      return { ok: false, kind: "failed", reason: "the metadata cannot be written now" };
    }
  }

  /** Listens by itself: what joins signals may keep something of each on one that lives as long as the node. */
  async #within(
    ms: number,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<OutboundAnswer>,
  ): Promise<OutboundAnswer> {
    const until = new AbortController();
    const stop = () => until.abort();
    let isLate = false;
    const cancel = this.#options.env.clock.after(ms, () => {
      isLate = true;
      stop();
    });
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    try {
      const answer = await work(until.signal);
      return isLate && !answer.ok && answer.kind === "aborted"
        ? { ok: false, kind: "failed", reason: `did not answer within ${ms} ms` }
        : answer;
    } finally {
      cancel();
      signal.removeEventListener("abort", stop);
    }
  }
}
