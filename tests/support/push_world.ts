/** Subscriptions over a topic of arrays: a handler that answers as a test says, a group that commits in memory. */
import type { OutboundAnswer, OutboundRequest } from "../../src/env/outbound_http.ts";
import { utf8 } from "../../src/lib/bytes.ts";
import { Semaphore } from "../../src/lib/semaphore.ts";
import type { ErrorName } from "../../src/protocol/error_code.ts";
import type { RecordInput } from "../../src/http/port.ts";
import { Push } from "../../src/http/push/push.ts";
import { subscription } from "../../src/http/push/subscription.ts";
import * as v from "valibot";
import { createHttpTopic } from "./http_topic.ts";
import { createMemoryTexts } from "./memory_texts.ts";

export interface Got {
  readonly request: OutboundRequest;
  readonly atMs: number;
  /** Offsets in the body. */
  readonly offsets: readonly number[];
  answer(status: number, retryAfter?: string): Promise<void>;
  fail(reason?: string): Promise<void>;
  readonly isOver: boolean;
}

export interface PushWorldOptions {
  readonly partitions?: number;
}

function offsetsIn(body: Uint8Array): number[] {
  try {
    const { records } = JSON.parse(utf8(body)) as { records?: { offset: number }[] };
    return (records ?? []).map(({ offset }) => offset);
  } catch {
    return [];
  }
}

export function createPushWorld({ partitions = 1 }: PushWorldOptions = {}) {
  const dead: RecordInput[] = [];
  let deadError: ErrorName | null = null;
  const topic = createHttpTopic(partitions, undefined, {
    produce: (_topic, records) => {
      if (deadError !== null) {
        const error = deadError;
        return Promise.resolve(records.map(() => ({ ok: false as const, error })));
      }
      dead.push(...records);
      return Promise.resolve(
        records.map((_, offset) => ({ ok: true as const, partition: 0, offset, timestampMs: 0 })),
      );
    },
  });
  const { clock, env } = topic;
  // With them nothing waits for the platform's cryptography, whose time no fake clock knows.
  const key = { kid: "k", x: "x", d: "d" };
  const keys = JSON.stringify({ sinceMs: clock.nowMs(), keys: [key, key] });
  const texts = createMemoryTexts(new Map([["push-keys", keys]]));
  const got: Got[] = [];
  const committed = new Map<number, number>();
  const commits: (readonly number[])[] = [];
  let members = 0;
  let isLeader = true;
  let commitError: ErrorName = "NONE";

  function send(request: OutboundRequest): Promise<OutboundAnswer> {
    return new Promise((resolve) => {
      let isOver = false;
      const end = async (answer: OutboundAnswer) => {
        isOver = true;
        resolve(answer);
        await clock.settle();
      };
      request.signal.addEventListener("abort", () => {
        isOver = true;
        resolve({ ok: false, kind: "aborted", reason: "was cut off" });
      });
      got.push({
        request,
        atMs: clock.monotonicMs(),
        offsets: offsetsIn(request.body),
        answer: (status, retryAfter) => end({ ok: true, status, retryAfter: retryAfter ?? null }),
        fail: (reason = "could not be reached") => end({ ok: false, kind: "failed", reason }),
        get isOver() {
          return isOver;
        },
      });
    });
  }

  const open = () =>
    new Push({
      env,
      gateway: topic.gateway,
      texts,
      groups: {
        commit: (_by, offsets) => {
          const outcome = members > 0 ? "UNKNOWN_MEMBER_ID" : commitError;
          if (outcome === "NONE") {
            for (const { partition, offset } of offsets) committed.set(partition, offset);
            commits.push(offsets.map(({ offset }) => offset));
          }
          return Promise.resolve(offsets.map(() => outcome));
        },
        committed: (_group, of) =>
          Promise.resolve({
            ok: true,
            offsets: of!.flatMap(({ topic: name, partition }) => {
              const offset = committed.get(partition);
              return offset === undefined ? [] : [{ topic: name, partition, offset, metadata: "" }];
            }),
          }),
        describeGroup: (group) =>
          Promise.resolve({
            ok: true,
            group,
            type: "classic",
            state: "Empty",
            assignor: "",
            members: Array.from({ length: members }, (_, i) => ({
              memberId: `m${i}`,
              instanceId: null,
              clientId: "c",
              assigned: [],
            })),
          }),
        leads: () => Promise.resolve(isLeader),
      },
      outbound: { send, close: () => {} },
      sign: (_key, _body, { delivery }) => Promise.resolve(`signed ${delivery}`),
      producePermits: new Semaphore(1_000_000),
      rules: () => ({ isLoopbackAllowed: true }),
    });
  let push = open();

  return {
    ...topic,
    texts,
    got,
    dead,
    committed,
    commits,
    get held() {
      return topic.held;
    },
    get waiting() {
      return topic.waiting;
    },
    get push() {
      return push;
    },
    /** Deliveries that have no answer yet. */
    underWay: () => got.filter(({ isOver }) => !isOver),
    async subscribe(over: Readonly<Record<string, unknown>> = {}): Promise<void> {
      const input = v.parse(subscription, {
        topics: ["t"],
        url: "https://hooks.example/in?a=b",
        from: "earliest",
        ...over,
      });
      await push.subscriptions.put("s", input);
      await clock.settle();
    },
    /** As after a crash: what is in memory is gone. */
    async restart(): Promise<void> {
      push.close();
      push = open();
      await clock.settle();
    },
    setMembers: (count: number) => void (members = count),
    setLeader: (leads: boolean) => void (isLeader = leads),
    setCommitError: (error: ErrorName) => void (commitError = error),
    setDeadError: (error: ErrorName | null) => void (deadError = error),
    status: () => push.shown(push.subscriptions.get("s")!),
  };
}
