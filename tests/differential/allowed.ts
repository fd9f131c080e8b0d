/**
 * The differences between Kafka's answers and ours that we want, each with its reason. The reasons are the list in
 * docs/kafka_differences.md, so each says what it is about; a rule that only follows from another one says so.
 */
import type { Allowance } from "./compare.ts";

/** Of fields that only one of the two has. */
const ABSENT = undefined;

const CONNECTION: readonly Allowance[] = [
  {
    at: /^(api versions) .* apiKeys\.(17|29|30|31|36|38|39|40|41|50|51)$/,
    ours: ABSENT,
    reason: "SASL, delegation tokens, ACLs and SCRAM users are not served.",
  },
  {
    at: /^api versions .* apiKeys\.(34|55|64|80|81)$/,
    ours: ABSENT,
    reason: "Replica directories, the Raft quorum and its brokers do not exist here.",
  },
  {
    at: /^api versions .* apiKeys\.(83|84|85|86|87|88|89)$/,
    ours: ABSENT,
    reason:
      "Streams groups, and what Kafka's brokers ask each other of share groups, are not served.",
  },
  {
    at:
      /^api versions .*(supported|finalized)Features\.(metadata|kraft|streams|eligible\.leader\.replicas)\.version$/,
    ours: ABSENT,
    reason: "ApiVersions names no features of parts of Kafka that are not here.",
  },
  {
    at: /^frames \/ negative array: $/,
    ours: "hung up",
    reason: "An array of length -2 does not decode; Kafka takes every negative length for null.",
  },
  {
    at: /^frames \/ invalid UTF-8: $/,
    ours: "hung up",
    reason: "Text that is not UTF-8 does not decode; Kafka replaces what it cannot read.",
  },
];

const SHARE_GROUPS: readonly Allowance[] = [
  {
    at: /^(group configs|describe configs \/ resource type 32:) .*configs\.streams\.[a-z.]+$/,
    ours: ABSENT,
    reason: "DescribeConfigs: groups have no settings of Streams groups (streams.*).",
  },
  {
    at: /^group configs \/ listed no more: configResources\.d-configured$/,
    ours: ABSENT,
    reason:
      "ListConfigResources: a group whose last setting was taken back is not listed any more; Kafka lists it with none.",
  },
  {
    at: /^share (ranges|transactions) .*startOffset$/,
    theirs: -1,
    reason:
      "ShareFetch: where a group begins in a partition is stored with its first fetch; Kafka does it with the first acknowledgement.",
  },
  {
    at: /^share window \/ above the start of the log: responses\./,
    theirs: ABSENT,
    reason:
      "ShareFetch: after the start of a log has moved the next fetch gets records; Kafka's finds out and comes back empty.",
  },
];

const EVERYWHERE: readonly Allowance[] = [
  {
    at: /[eE]rrorMessage$/,
    ours: "<text>",
    reason: "We say in words what is wrong where Kafka sends the code alone.",
  },
  {
    at: /errorCode$/,
    theirs: -1,
    reason: "Kafka fails with UNKNOWN_SERVER_ERROR where we name what is wrong.",
  },
];

const REPEATED: readonly Allowance[] = [
  {
    at: / twice: .* again 2$/,
    reason:
      "What is asked for twice is refused, deleted or listed as often as it is asked, or once where it is described; Kafka's APIs differ in that.",
  },
];

const TOPICS: readonly Allowance[] = [
  {
    at: /configs\.skerry\.[a-z.]+$/,
    theirs: ABSENT,
    reason: "Topics have settings of our own beside Kafka's (skerry.*).",
  },
  {
    at: /^create topics .*topicId$/,
    reason:
      "CreateTopics: a topic that is only validated has no id; Kafka shows one that it throws away.",
  },
  {
    at: /^create topics \/ collision: topics\.d-x_y\.errorCode$/,
    ours: 17,
    reason:
      "CreateTopics: names of one request may not collide either: Kafka compares with the topics of before only, and ends with two that it would refuse one by one.",
  },
  {
    at: /^create topics \/ factor (2|32767): .*errorCode$/,
    ours: 0,
    reason:
      "CreateTopics: any replication factor is taken: the store replicates. Tools ask for three.",
  },
  {
    at:
      /message\.(timestamp\.difference\.max\.ms|format\.version|downconversion\.enable)=.*errorCode$/,
    ours: 0,
    reason: "Topic settings that Kafka 4 has dropped are ignored: old tools still send them.",
  },
  {
    at: /retention\.bytes=-2: .*errorCode$/,
    ours: 40,
    reason: "retention.bytes: only -1 is no limit; Kafka takes any negative number for it.",
  },
  {
    at: /=(delete, compact| 5 |TRUE): topics\.d-config-\d+\.configs\.[a-z.]+\.value$/,
    reason: "The value of a setting is stored in its plain form, Kafka keeps blanks and capitals.",
  },
  {
    at: /^delete topics \/ id and name of one: .*topicId$/,
    ours: "<none>",
    reason: "DeleteTopics: a refused entry is answered as it was sent.",
  },
  {
    at: /^metadata \/ .* v1[012]: (brokers\.1|clusterId|controllerId)$/,
    reason: "Metadata: a refused request is told the cluster all the same.",
  },
  {
    at: /^metadata \/ (created by asking|collision, create): topics\.d.meta(-auto)?\.errorCode$/,
    ours: 0,
    theirs: 3,
    reason:
      "A topic that Metadata creates is there in the same answer; Kafka's clients have to ask again.",
  },
  {
    at: /^describe configs \/ resource type (8|16): /,
    ours: 42,
    reason: "DescribeConfigs: loggers and client metrics have no settings here.",
  },
  {
    at: /^config resources \/ type 8: /,
    ours: ABSENT,
    reason: "ListConfigResources: there are no broker loggers.",
  },
  {
    at: /^describe configs \/ broker broker\.id: .*synonyms\.1$/,
    ours: ABSENT,
    reason: "DescribeConfigs: broker.id has no default.",
  },
  {
    at: /^alter configs \/ resource twice: $/,
    theirs: "no answer",
    reason: "AlterConfigs with a resource twice is refused; Kafka never answers it.",
  },
  {
    at: /^elect leaders \/ all: replicaElectionResults\.d-(f2|f32767|x_y)$/,
    reason:
      "Follows from the replication factors and the collision above: one of the two has the topic.",
  },
  {
    at: /^log directories .*(total|usable)Bytes$/,
    ours: -1,
    reason: "DescribeLogDirs: an object store has no size.",
  },
  {
    at: /^features \/ same level( v0)?: .*errorMessage$/,
    ours: null,
    reason: "UpdateFeatures: a level that is there already needs no words.",
  },
  {
    at: /^features \/ feature twice: errorCode$/,
    ours: 42,
    reason: "UpdateFeatures: a feature named twice is refused; Kafka takes the last.",
  },
];

const RECORDS: readonly Allowance[] = [
  {
    at: /partitionResponses\.\d+\.logStartOffset$/,
    ours: -1,
    theirs: 0,
    reason:
      "Produce: a refused batch does not tell the log start; Kafka tells it for some errors, and no client looks.",
  },
  {
    at: /^produce \/ null records: $/,
    theirs: "no answer",
    reason: "Produce with null records is INVALID_RECORD; Kafka never answers it.",
  },
  {
    at: /^produce \/ (delete horizon flag|producer without epoch): .*errorCode$/,
    ours: 87,
    theirs: 0,
    reason:
      "Produce: a batch with a delete horizon, which only brokers write, is INVALID_RECORD, and one of a producer without an epoch too.",
  },
  {
    at: /^produce \/ (delete horizon flag|producer without epoch): stored: /,
    reason: "Follows from the two refusals above.",
  },
  {
    at: /^fetch( sessions)? .*abortedTransactions$/,
    ours: null,
    theirs: [],
    reason:
      "Fetch: the list of aborted transactions is null for read_uncommitted; Kafka's is empty in some errors.",
  },
  {
    at: /^fetch \/ 6000 bytes in all: .*records\./,
    theirs: ABSENT,
    reason:
      "Fetch sends whole batches: what Kafka fills with the beginning of one goes to the next partition.",
  },
  {
    at: /^fetch \/ as a replica: .*errorCode$/,
    ours: 0,
    theirs: 6,
    reason: "Fetch: there are no replicas, every caller is a consumer.",
  },
  {
    at: /^leader epochs \/ epoch -2: .*(leaderEpoch|endOffset)$/,
    ours: -1,
    reason: "OffsetForLeaderEpoch: no log has an epoch of -2.",
  },
  {
    at: /^delete records \/ list offsets -3: .*offset$/,
    ours: 3,
    theirs: 1,
    reason:
      "ListOffsets -3 answers a record that can be read; Kafka's largest time may lie below the log start.",
  },
  {
    at: /^list offsets \/ special -[56].*(offset|leaderEpoch)$/,
    theirs: -1,
    reason:
      "ListOffsets: everything lies in the store, so -5 and -6 tell what is durable; Kafka without tiers has none.",
  },
];

const GROUPS: readonly Allowance[] = [
  {
    at: /^group life \/ describe while rebalancing: .*memberAssignment$/,
    ours: "",
    reason: "DescribeGroups: a group that gathers has no assignments; Kafka shows those of before.",
  },
  {
    at: /^find coordinator \/ (group v[123]|empty group): errorMessage$/,
    ours: null,
    reason: "FindCoordinator: success has no words; Kafka's text is NONE.",
  },
  {
    at: /^group refusals \/ empty instance id: (leader|memberId|members\.(member)?-<uuid 1>)$/,
    reason: "JoinGroup: the id of a member without a name begins with a word.",
  },
  {
    at: /^list groups .*groups\.d-no3?$/,
    ours: ABSENT,
    reason: "JoinGroup: a join that is refused makes no group.",
  },
  {
    at: /^offsets of groups \/ far offset: .*errorCode$/,
    ours: 28,
    reason: "OffsetCommit: offsets end at 2^53 - 1.",
  },
];

export const SECTIONS: readonly { readonly title: string; readonly rules: readonly Allowance[] }[] =
  [
    { title: "All APIs", rules: [...EVERYWHERE, ...REPEATED] },
    { title: "Connections and versions", rules: CONNECTION },
    { title: "Topics, settings, the cluster", rules: TOPICS },
    { title: "Records", rules: RECORDS },
    { title: "Groups and offsets", rules: [...GROUPS, ...SHARE_GROUPS] },
  ];

export const ALLOWED: readonly Allowance[] = SECTIONS.flatMap(({ rules }) => rules);
