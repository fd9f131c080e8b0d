/**
 * Who is there? Nodes have no connection to each other, but all of them read the metadata log: a call is an
 * entry in it, and so is each answer. Nothing is written while nobody calls. A node that lives and does not
 * answer (it cannot reach the log, or stands still) is taken for dead, which costs it its streams and no record.
 */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import type { NodeEpoch, NodeId } from "../lib/brand.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { ROLL_CALL_ANSWER_ATTEMPTS, ROLL_CALL_LOOK_MS, ROLL_CALL_MS } from "../lib/limits.ts";
import type { Requester } from "../controller/command.ts";
import type { Image } from "../controller/image.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";

const CALL_KEY = "roll-call";

export interface RollCallParts {
  readonly env: Env;
  readonly metadata: MetadataStore;
  readonly requester: Requester;
}

export interface Incarnate {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
}

function answerKey(node: NodeId): string {
  return `${CALL_KEY}/${node}`;
}

function callOf(image: Image): number {
  return image.kv.get(CALL_KEY)?.version ?? 0;
}

/** Null when another write came between: the next look at the table shows it. */
async function putKv(metadata: MetadataStore, key: string, value: string): Promise<number | null> {
  const expectedVersion = metadata.view().kv.get(key)?.version ?? 0;
  const decided = await metadata.submit({ type: "put-kv", key, value, expectedVersion });
  return decided.ok ? expectedVersion + 1 : null;
}

/** Answers every call of others from now on; returns the end of it. */
export function answerRollCalls({ env, metadata, requester }: RollCallParts): () => void {
  const { nodeId, epoch } = requester;
  let answered = callOf(metadata.view());
  const answer = async (heard: number): Promise<void> => {
    for (let attempt = 1; attempt <= ROLL_CALL_ANSWER_ATTEMPTS; attempt++) {
      if (await putKv(metadata, answerKey(nodeId), `${epoch}/${heard}`) !== null) return;
    }
  };
  return metadata.onChange(() => {
    const image = metadata.view();
    const heard = callOf(image);
    if (heard <= answered) return;
    answered = heard;
    if (image.kv.get(CALL_KEY)?.value === String(nodeId)) return;
    answer(heard).catch((error: unknown) => {
      env.log.log("warn", "roll-call-unanswered", { call: heard, error: messageOf(error) });
    });
  });
}

function othersIn(image: Image, me: NodeId): Incarnate[] {
  return [...image.nodes.values()]
    .filter(({ nodeId, state }) => nodeId !== me && state === "live")
    .map(({ nodeId, epoch }) => ({ nodeId, epoch }))
    .toSorted((a, b) => a.nodeId - b.nodeId);
}

/** Registered anew counts as an answer, as does the end of the incarnation: somebody takes care of it. */
function isSilent(image: Image, { nodeId, epoch }: Incarnate, called: number): boolean {
  const row = image.nodes.get(nodeId);
  if (row?.epoch !== epoch || row.state !== "live") return false;
  const [of, heard] = (image.kv.get(answerKey(nodeId))?.value ?? "").split("/").map(Number);
  return of !== epoch || heard === undefined || heard < called;
}

async function call(metadata: MetadataStore, me: NodeId): Promise<number> {
  for (let attempt = 1; attempt <= ROLL_CALL_ANSWER_ATTEMPTS; attempt++) {
    const version = await putKv(metadata, CALL_KEY, String(me));
    if (version !== null) return version;
  }
  throw new FaultError("timeout", "Others called at every attempt", { retriable: true });
}

/**
 * Incarnations that hold their node id and did not answer in time, by the end of the log. Throws what the
 * metadata store throws; FaultError `aborted` once the signal says so.
 */
export async function silentNodes(
  { env, metadata, requester }: RollCallParts,
  signal: AbortSignal,
): Promise<readonly Incarnate[]> {
  const others = othersIn(metadata.view(), requester.nodeId);
  if (others.length === 0) return [];
  const called = await call(metadata, requester.nodeId);
  const silent = (image: Image) => others.filter((one) => isSilent(image, one, called));
  const startedMs = env.clock.monotonicMs();
  while (env.clock.monotonicMs() - startedMs < ROLL_CALL_MS) {
    if (silent(metadata.view()).length === 0) return [];
    await sleep(env.clock, ROLL_CALL_LOOK_MS, signal);
    if (signal.aborted) throw new FaultError("aborted", "The node closes", { retriable: false });
  }
  // Who stood still meanwhile must not judge by what it knew before.
  return silent(await metadata.fresh());
}
