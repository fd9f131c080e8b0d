/** `skerry group list|describe|reset|delete|delete-offsets`. */
import { listGroupsApi } from "../../protocol/message/16_list_groups.ts";
import { deleteGroupsApi } from "../../protocol/message/42_delete_groups.ts";
import { offsetDeleteApi } from "../../protocol/message/47_offset_delete.ts";
import { isShareGroup, removeShareOffsets } from "../client/share_offsets.ts";
import { checkCode, CLIENT_EXIT } from "../client/fault.ts";
import { answerOutcomes, outcomeOf, table, writeJson } from "./answer.ts";
import type { Call, Command } from "./command.ts";
import { DESCRIBE } from "./group_describe.ts";
import { WordFault } from "./syntax.ts";
import { PARTITIONS_OF_TOPICS, RESET, topicsGiven } from "./group_reset.ts";

const GROUPS_MAX = 10_000;

/** Every broker keeps some groups. */
async function list({ words, cluster, io }: Call): Promise<number> {
  const all = await cluster.retrying(async (leftMs) => {
    await cluster.topics([], { leftMs });
    return await Promise.all(cluster.nodeIds.map(async (id) => {
      const connection = await cluster.node(id);
      const answer = await connection.call(listGroupsApi, {}, { timeoutMs: leftMs });
      checkCode("list groups", answer.errorCode);
      return answer.groups;
    }));
  });
  const groups = all.flat().map(({ groupId, groupState, groupType, protocolType }) => ({
    group: groupId,
    state: groupState,
    type: groupType === "" ? "classic" : groupType.toLowerCase(),
    protocol: protocolType,
  })).toSorted((a, b) => a.group < b.group ? -1 : 1);
  if (words.json) await writeJson(io, { groups });
  else {
    const rows = groups.map(({ group, state, type }) => [group, state, type]);
    await io.write(table(["GROUP", "STATE", "TYPE"], rows));
  }
  return CLIENT_EXIT.ok;
}

async function remove({ words, cluster, io }: Call): Promise<number> {
  const outcomes = await Promise.all(
    [...new Set(words.operands)].map((group) =>
      outcomeOf(group, () =>
        cluster.retrying(async (leftMs) => {
          const connection = await cluster.coordinator(group, leftMs);
          const { results } = await connection.call(deleteGroupsApi, { groupsNames: [group] }, {
            timeoutMs: leftMs,
          });
          checkCode(`delete group ${group}`, results[0]?.errorCode ?? 0);
          return { said: `deleted ${group}`, detail: { deleted: true } };
        }))
    ),
  );
  return await answerOutcomes(io, words.json, outcomes);
}

/** A share group has states of whole topics only. */
async function deleteShareOffsets({ words, cluster, io }: Call, group: string): Promise<number> {
  const given = topicsGiven(words);
  const inPart = given.find(({ partitions }) => partitions.length > 0);
  if (inPart !== undefined) {
    throw new WordFault(`--topic ${inPart.topic}: a share group gives up whole topics only`);
  }
  const removed = await removeShareOffsets(cluster, group, given.map(({ topic }) => topic));
  const outcomes = removed.map(({ topic, code, message }) =>
    outcomeOf(topic, () => {
      checkCode(`delete the offsets of group ${group} in ${topic}`, code, { message });
      return Promise.resolve({
        said: `${group} has no offsets in ${topic} any more`,
        detail: { topic },
      });
    })
  );
  return await answerOutcomes(io, words.json, await Promise.all(outcomes));
}

async function deleteOffsets(call: Call): Promise<number> {
  const { words, cluster, io } = call;
  const group = words.operands[0]!;
  words.required("topic");
  if (await isShareGroup(cluster, group)) return await deleteShareOffsets(call, group);
  const topics: { name: string; partitions: number[] }[] = [];
  for (const { topic, partitions } of topicsGiven(words)) {
    const view = await cluster.retrying((leftMs) => cluster.topic(topic, { leftMs }));
    const all = view.partitions.map(({ partition }) => partition);
    topics.push({ name: topic, partitions: partitions.length > 0 ? partitions : all });
  }
  const answer = await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const got = await connection.call(offsetDeleteApi, {
      groupId: group,
      topics: topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map((partitionIndex) => ({ partitionIndex })),
      })),
    }, { timeoutMs: leftMs });
    checkCode(`delete offsets of group ${group}`, got.errorCode);
    return got;
  });
  const outcomes = answer.topics.flatMap(({ name: topic, partitions }) =>
    partitions.map(({ partitionIndex, errorCode: code }) => ({ topic, partitionIndex, code }))
  ).map(({ topic, partitionIndex: partition, code }) => {
    const name = `${topic}-${partition}`;
    return outcomeOf(name, () => {
      checkCode(`delete the offset of group ${group} in ${name}`, code);
      return Promise.resolve({
        said: `${group} has no offset in ${name} any more`,
        detail: { topic, partition },
      });
    });
  });
  return await answerOutcomes(io, words.json, await Promise.all(outcomes));
}

export const GROUP_COMMANDS: readonly Command[] = [
  {
    name: "group list",
    operands: "",
    operandsMin: 0,
    operandsMax: 0,
    help: "All groups.",
    options: {},
    run: list,
  },
  DESCRIBE,
  RESET,
  {
    name: "group delete",
    operands: "GROUP...",
    operandsMin: 1,
    operandsMax: GROUPS_MAX,
    help: "Deletes groups that have no members, with their offsets.",
    options: {},
    run: remove,
  },
  {
    name: "group delete-offsets",
    operands: "GROUP",
    operandsMin: 1,
    operandsMax: 1,
    help: "Deletes offsets of topics that no member reads.",
    options: { "topic": PARTITIONS_OF_TOPICS },
    run: deleteOffsets,
  },
];
