/**
 * Nodes that are broken on purpose, from outside: by what is done behind the ports of the object store, the
 * metadata store and the streams. No branch in the node knows of it. Each names the checkers that must notice.
 */
import type { Command } from "../../../src/controller/command.ts";
import { streamObjectRecord, streamSetRecord } from "../../../src/controller/decide_objects.ts";
import { walKey } from "../../../src/controller/image.ts";
import {
  METADATA_TRIM_AGE_MS_MIN,
  WAL_BULKS_IN_FLIGHT_MAX,
  WAL_EVIDENCE_AGE_MS_MAX,
  WAL_OBJECT_HEADER_BYTES,
} from "../../../src/lib/limits.ts";
import {
  dataKey,
  parseDataKey,
  parseLogKey,
  parseSnapshotKey,
  parseWalKey,
  walKey as objectWalKey,
} from "../../../src/object/object_key.ts";
import type { PutAnswer } from "../../../src/object/object_store.ts";
import { endOffset, type StreamRecord } from "../../../src/storage/stream_record.ts";
import { skipUnresolved, snapshotOtherState } from "../canary.ts";
import { auditByAge } from "./audit.ts";
import { CLUSTER_ID } from "./cluster_id.ts";
import { RogueLog } from "./rogue_log.ts";
import { overlaid, type Sabotage, submitting } from "./sabotage.ts";

function isSlot(key: string): boolean {
  return parseWalKey(CLUSTER_ID, key) !== null;
}

// --- WAL --------------------------------------------------------------------------------------

/** As soon as one slot is stored, every lower one counts as stored, too. */
const acknowledgeUnordered: Sabotage = {
  store(line) {
    const waiting = new Map<string, (answer: PutAnswer) => void>();
    return {
      ...line,
      async put(key, body, options) {
        const at = parseWalKey(CLUSTER_ID, key);
        if (at === null) return await line.put(key, body, options);
        const early = new Promise<PutAnswer>((resolve) => void waiting.set(key, resolve));
        const stored = line.put(key, body.slice(), options);
        stored.catch(() => {});
        const answer = await Promise.race([early, stored]);
        waiting.delete(key);
        for (const [other, resolve] of waiting) {
          const lower = parseWalKey(CLUSTER_ID, other)!;
          if (lower.nodeEpoch === at.nodeEpoch && lower.slot < at.slot) resolve(answer);
        }
        return answer;
      },
    };
  },
};

const overwriteSlots: Sabotage = {
  store: (line) => ({
    ...line,
    put: (key, body, options) => line.put(key, body, isSlot(key) ? {} : options),
  }),
};

/** Says of a seal that it is there. */
const noSeal: Sabotage = {
  store: (line, { process }) => ({
    ...line,
    put(key, body, options) {
      const isSeal = isSlot(key) && body.length === WAL_OBJECT_HEADER_BYTES;
      if (!isSeal) return line.put(key, body, options);
      return Promise.resolve({ created: true, storeNowMs: process.env.clock.nowMs() });
    },
  }),
};

/** It stands still for longer than proof is good for while an answer comes, and does not read the log. */
const acknowledgeStale: Sabotage = {
  store(line, { process }) {
    let puts = 0;
    return {
      ...line,
      put(key, body, options) {
        if (isSlot(key) && ++puts === 3) process.pause(WAL_EVIDENCE_AGE_MS_MAX + 60_000);
        return line.put(key, body, options);
      },
    };
  },
  metadata: (inner) => ({
    ...submitting(inner, (command) => inner.submit(command)),
    fresh: () => Promise.resolve(inner.view()),
  }),
};

const trimBeforeCommit: Sabotage = {
  metadata: (inner, { process }) =>
    submitting(inner, async (command) => {
      if (command.type !== "commit-upload") return await inner.submit(command);
      process.env.clock.after(2_000, () => void inner.submit(command).catch(() => {}));
      return { ok: true, at: inner.view().at };
    }),
};

// --- recovery and moves -----------------------------------------------------------------------

/** What a recoverer saw of the trim point when it first looked. */
const trimPointOfOld: Sabotage = {
  metadata(inner) {
    const seen = new Map<string, number>();
    inner.onChange(() => {
      for (const { nodeId, epoch, walTrim } of inner.view().wals.values()) {
        const key = walKey(nodeId, epoch);
        if (!seen.has(key)) seen.set(key, walTrim);
      }
    });
    return submitting(inner, async (command) => {
      const decided = await inner.submit(command);
      if (command.type !== "begin-recovery" || !decided.ok) return decided;
      return { ...decided, walTrim: seen.get(walKey(command.nodeId, command.epoch)) ?? 0 };
    });
  },
};

/** A commit fails: it takes that for the end, and closes the streams where the objects end. */
const recoverNothingAfterError: Sabotage = {
  metadata: (inner) =>
    submitting(inner, async (command) => {
      const isFailing = command.type === "finish-recovery" && command.streamObjects.length > 0;
      if (!isFailing) return await inner.submit(command);
      const { streams } = await inner.fresh();
      const ends = command.ends.map(({ streamId, end }) => ({
        streamId,
        end: streams.get(streamId)?.end ?? end,
      }));
      return await inner.submit({ ...command, streamSetObject: null, streamObjects: [], ends });
    }),
};

/** Closes where the objects end at the moment, without its appends and its upload. */
const moveWithoutDrain: Sabotage = {
  stream: (inner, { streams }) =>
    overlaid(inner, {
      async close() {
        const end = streams.viewStream(inner.streamId)?.end ?? 0;
        await streams.closeStream(inner.streamId, inner.epoch, end);
        inner.close().catch(() => {});
      },
    }),
};

/** Whoever wants a stream closes it in the name of its owner. */
const openOnTimer: Sabotage = {
  metadata: (inner) =>
    submitting(inner, async (command) => {
      if (command.type === "open-stream") {
        const row = (await inner.fresh()).streams.get(command.streamId);
        if (row?.open === true && row.owner.epoch !== command.by.epoch) {
          const { streamId, epoch, end, owner: by } = row;
          await inner.submit({ type: "close-stream", by, streamId, epoch, end });
        }
      }
      return await inner.submit(command);
    }),
};

// --- objects ----------------------------------------------------------------------------------

/** Deletes what is some seconds old and has no row yet. */
const sweepByAge: Sabotage = {
  metadata(inner, { process, line }) {
    const { clock } = process.env;
    const sweep = async (): Promise<void> => {
      const doomed: string[] = [];
      for await (const { key, lastModifiedMs } of line.list("")) {
        const id = parseDataKey(CLUSTER_ID, key);
        const isYoung = clock.nowMs() - lastModifiedMs < 50;
        if (id !== null && !isYoung && !inner.view().objects.has(id)) doomed.push(key);
      }
      await line.delete(doomed);
    };
    const again = () => {
      clock.after(300, () => void sweep().catch(() => {}).then(again));
    };
    again();
    return inner;
  },
};

const deleteBeforeDurable: Sabotage = {
  metadata: (inner, { line }) =>
    submitting(inner, (command) => {
      if (command.type === "commit-compaction") {
        const keys = command.replaces.map(({ objectId }) => dataKey(CLUSTER_ID, objectId));
        line.delete(keys).catch(() => {});
      }
      return inner.submit(command);
    }),
};

/** What the metadata refuses is written all the same, and what was committed once more, as after a lost answer. */
const commitUnvalidated: Sabotage = {
  metadata(inner, { process, line }) {
    const rogue = new RogueLog(line, process);
    let commits = 0;
    return submitting(inner, async (command) => {
      const decided = await inner.submit(command);
      if (command.type !== "commit-upload" || decided.ok && ++commits % 4 > 0) return decided;
      const { nodeId, epoch } = command.by;
      const { streamSetObject, streamObjects, walTrim } = command.commit;
      await rogue.append({
        type: "uploaded",
        nodeId,
        epoch,
        streamSetObject: streamSetObject === null ? null : streamSetRecord(streamSetObject),
        streamObjects: streamObjects.map((object) => streamObjectRecord(object, [])),
        ends: [],
        walTrim,
      });
      return decided;
    });
  },
};

const compactWithLoss: Sabotage = {
  metadata(inner, { process, line }) {
    const rogue = new RogueLog(line, process);
    return submitting(inner, async (command) => {
      const isLossy = command.type === "commit-compaction" && command.streamObjects.length > 0;
      if (!isLossy) return await inner.submit(command);
      const { by, streamSetObject, streamObjects, replaces } = command;
      const links = new Map(command.composites?.map((one) => [one.objectId, one.links]));
      await rogue.append({
        type: "compacted",
        nodeId: by.nodeId,
        streamSetObject: streamSetObject === null ? null : streamSetRecord(streamSetObject),
        streamObjects: streamObjects.slice(1)
          .map((object) => streamObjectRecord(object, links.get(object.objectId) ?? [])),
        replaced: replaces.map(({ objectId }) => objectId),
      });
      return { ok: true, at: (await inner.fresh()).at };
    });
  },
};

/** Purges ids whose objects are still there. */
const purgeUndeleted: Sabotage = {
  store: (line) => ({
    ...line,
    delete: (keys) =>
      keys.some((key) => parseDataKey(CLUSTER_ID, key) === null)
        ? line.delete(keys)
        : Promise.resolve({ gone: keys, failed: [] }),
  }),
};

// --- metadata and reads -----------------------------------------------------------------------

const APPLIED_TWICE: ReadonlySet<Command["type"]> = new Set(["trim-stream", "close-stream"]);

const applyTwice: Sabotage = {
  metadata(inner, { process, line }) {
    const rogue = new RogueLog(line, process);
    return submitting(inner, async (command) => {
      const decided = await inner.submit(command);
      if (decided.ok && APPLIED_TWICE.has(command.type)) await rogue.repeat(decided.at);
      return decided;
    });
  },
};

/** Every snapshot passes for one that has stood for T_TRIM. */
const trimBehindYoung: Sabotage = {
  store: (line) => ({
    ...line,
    async *list(prefix, options) {
      for await (const info of line.list(prefix, options)) {
        const isSnapshot = parseSnapshotKey(CLUSTER_ID, info.key) !== null;
        const olderMs = isSnapshot ? METADATA_TRIM_AGE_MS_MIN : 0;
        yield { ...info, lastModifiedMs: info.lastModifiedMs - olderMs };
      }
    },
  }),
};

/** Another writer's entry at its position is taken for its own. */
const reportOthers: Sabotage = {
  store: (line) => ({
    ...line,
    async put(key, body, options) {
      const answer = await line.put(key, body, options);
      return parseLogKey(CLUSTER_ID, key) === null ? answer : { ...answer, created: true };
    },
  }),
};

const wrongSnapshot: Sabotage = {
  store: (line, { process, world, store }) =>
    snapshotOtherState(line, process, { world, store, clusterId: CLUSTER_ID }),
};

/** Goes on to the next position of the log while an entry has no answer. */
const pastUnresolved: Sabotage = {
  store: (line, { process, world, store }) =>
    skipUnresolved(line, process, { world, store, clusterId: CLUSTER_ID }),
};

/** Creates a slot that the window has no room for yet. */
const beyondWindow: Sabotage = {
  store: (line) => ({
    ...line,
    put(key, body, options) {
      const at = parseWalKey(CLUSTER_ID, key);
      const stored = line.put(key, body, options);
      if (at === null) return stored;
      const later = objectWalKey(CLUSTER_ID, { ...at, slot: at.slot + WAL_BULKS_IN_FLIGHT_MAX });
      line.put(later, body.slice(), options).catch(() => {});
      return stored;
    },
  }),
};

/** Whose command it loses, waits for ever; the entry is in the log. */
const loseCommands: Sabotage = {
  metadata(inner) {
    let commands = 0;
    return submitting(inner, async (command) => {
      const decided = await inner.submit(command);
      return ++commands % 16 > 0 ? decided : await new Promise(() => {});
    });
  },
};

/** Readers get what was appended, whether or not it is durable. */
const readUnacknowledged: Sabotage = {
  stream(inner) {
    const appended: StreamRecord[] = [];
    const all = overlaid(inner, {
      append(count, payload) {
        const answer = inner.append(count, payload);
        appended.push({ ...answer.record, payload: payload.slice() });
        return answer;
      },
      fetch(start, end, options) {
        const newer = appended.filter((record) => endOffset(record) > start);
        const isMine = (newer[0]?.baseOffset ?? Infinity) <= start;
        return isMine ? Promise.resolve(newer) : inner.fetch(start, end, options);
      },
      trim: (start) => inner.trim(Math.min(start, inner.confirmOffset)),
    });
    return Object.defineProperty(all, "confirmOffset", { get: () => inner.nextOffset });
  },
};

export interface Planted {
  readonly bug: Sabotage;
  /** The checkers of which one has to notice. */
  readonly caughtBy: RegExp;
}

/** By what a broken node does. */
export const PLANTED: ReadonlyMap<string, Planted> = new Map([
  ["acknowledges out of order", { bug: acknowledgeUnordered, caughtBy: /I6/ }],
  ["overwrites WAL slots", { bug: overwriteSlots, caughtBy: /I5/ }],
  ["recovers without a seal", { bug: noSeal, caughtBy: /I5/ }],
  ["acknowledges on stale evidence", { bug: acknowledgeStale, caughtBy: /I16/ }],
  ["trims its WAL before the commit", { bug: trimBeforeCommit, caughtBy: /I6/ }],
  ["reads the trim point before the epoch ends", {
    bug: trimPointOfOld,
    caughtBy: /below the WAL trim|empty although|I6|I12/,
  }],
  ["stops a recovery at a failed commit", { bug: recoverNothingAfterError, caughtBy: /I12/ }],
  ["moves a stream without draining it", { bug: moveWithoutDrain, caughtBy: /not-open|I7|I12/ }],
  ["opens a stream without recovery", { bug: openOnTimer, caughtBy: /I7|I12/ }],
  ["sweeps objects by their age", { bug: sweepByAge, caughtBy: /I9/ }],
  ["deletes inputs before the entry is durable", { bug: deleteBeforeDurable, caughtBy: /I9/ }],
  ["commits an upload without checks", { bug: commitUnvalidated, caughtBy: /I8|I10|I12/ }],
  ["drops a live range in a compaction", { bug: compactWithLoss, caughtBy: /I8/ }],
  ["purges what it has not deleted", { bug: purgeUndeleted, caughtBy: /I11/ }],
  ["audits the store by age alone", { bug: { audit: auditByAge }, caughtBy: /I9/ }],
  ["reports the entry of another writer", { bug: reportOthers, caughtBy: /^I1:/ }],
  ["trims the log behind a young snapshot", { bug: trimBehindYoung, caughtBy: /I14/ }],
  ["applies a command twice", { bug: applyTwice, caughtBy: /I3/ }],
  ["goes on past an entry without an answer", { bug: pastUnresolved, caughtBy: /^I17: .* entry/ }],
  ["writes WAL slots beyond its window", { bug: beyondWindow, caughtBy: /^I17: .* slot/ }],
  ["forgets who waits for a command", { bug: loseCommands, caughtBy: /^I18/ }],
  ["writes another state into a snapshot", { bug: wrongSnapshot, caughtBy: /I15/ }],
  ["reads what is not acknowledged", { bug: readUnacknowledged, caughtBy: /I12/ }],
]);
