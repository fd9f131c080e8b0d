/** Kafka's rules for topic names. Pure. */

/** Where groups live. Only the coordinator makes it: what it is made like is not the client's choice. */
export const OFFSETS_TOPIC = "__consumer_offsets";
/** Where transactions live; made like the one above. */
export const TRANSACTIONS_TOPIC = "__transaction_state";
/** Where the states of share groups live; made like the others, but never compacted by key. */
export const SHARE_STATE_TOPIC = "__share_group_state";

export const NAME_LENGTH_MAX = 249;
const LEGAL = /^[a-zA-Z0-9._-]+$/;

/** What is wrong with a name, or null. */
export function topicNameProblem(name: string): string | null {
  if (name === "") return "the empty string is not allowed";
  if (name === "." || name === "..") return `'${name}' is not allowed`;
  if (name.length > NAME_LENGTH_MAX) {
    return `the length of ${name.length} is longer than the allowed ${NAME_LENGTH_MAX}`;
  }
  return LEGAL.test(name)
    ? null
    : `'${
      name.slice(0, 60)
    }' contains other characters than ASCII letters, digits, '.', '_' and '-'`;
}

/** Names that differ only in `.` and `_` collide, because metrics cannot tell them apart. */
export function collisionKey(name: string): string {
  return name.replaceAll(".", "_");
}
