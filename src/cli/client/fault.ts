/** What goes wrong between a client and a broker: one line for people, one exit code for scripts. */
import { type ErrorName, errorName, isRetriable } from "../../protocol/error_code.ts";

/** Exit codes of the commands that speak to a broker, as docs/cli.md lists them. */
export const CLIENT_EXIT = {
  ok: 0,
  /** The broker refused, or some of several did not succeed. */
  failed: 1,
  usage: 2,
  /** No connection, or no outcome in time. */
  unreachable: 3,
  notFound: 4,
} as const;

export type ClientExit = typeof CLIENT_EXIT[keyof typeof CLIENT_EXIT];

export class ClientFault extends Error {
  override readonly name = "ClientFault";
  readonly exit: ClientExit;
  /** Whether the same call may succeed later. */
  readonly retriable: boolean;
  /** The broker's word; null when none came. */
  readonly error: ErrorName | null;

  constructor(
    message: string,
    { exit, retriable = false, error = null }: {
      readonly exit: ClientExit;
      readonly retriable?: boolean;
      readonly error?: ErrorName | null;
    },
  ) {
    super(message);
    this.exit = exit;
    this.retriable = retriable;
    this.error = error;
  }
}

export function notFoundFault(message: string): ClientFault {
  return new ClientFault(message, { exit: CLIENT_EXIT.notFound });
}

/** What was given on standard input, or what the answer holds, cannot be used. */
export function dataFault(message: string): ClientFault {
  return new ClientFault(message, { exit: CLIENT_EXIT.failed });
}

export function unreachableFault(message: string): ClientFault {
  return new ClientFault(message, { exit: CLIENT_EXIT.unreachable, retriable: true });
}

const NOT_FOUND: ReadonlySet<ErrorName> = new Set<ErrorName>([
  "UNKNOWN_TOPIC_OR_PARTITION",
  "UNKNOWN_TOPIC_ID",
  "GROUP_ID_NOT_FOUND",
  "RESOURCE_NOT_FOUND",
]);

/** What to do about it, where the word alone does not say. */
const HINTS: Readonly<Partial<Record<ErrorName, string>>> = {
  UNKNOWN_TOPIC_OR_PARTITION: "skerry topic list shows what is there",
  GROUP_ID_NOT_FOUND: "skerry group list shows what is there",
  TOPIC_ALREADY_EXISTS: "--if-not-exists accepts one that is there",
  NON_EMPTY_GROUP: "stop its members first",
  UNKNOWN_MEMBER_ID: "the group has members of its own: stop them first",
  GROUP_SUBSCRIBED_TO_TOPIC: "a member still reads the topic: stop it first",
  REQUEST_TIMED_OUT: "the store is slow or away; a longer --timeout waits longer",
  NOT_ENOUGH_REPLICAS: "the broker cannot write to its store now; a longer --timeout waits longer",
  MESSAGE_TOO_LARGE: "the topic allows max.message.bytes; skerry config set changes it",
  UNSUPPORTED_VERSION: "the broker is too old, or lacks this request",
  INVALID_CONFIG: "skerry config get --all lists keys and values",
  UNKNOWN_PRODUCER_ID: "run it again: it begins with a new producer id",
  OUT_OF_ORDER_SEQUENCE_NUMBER: "run it again: it begins with a new producer id",
  LEADER_NOT_AVAILABLE: "no broker leads the partition now; a longer --timeout waits longer",
};

export interface BrokerFaultOptions {
  /** What the broker adds in its own words. */
  readonly message?: string | null;
  /** A leader or its partition may be on the move: what it does not know may be known in a moment. */
  readonly atLeader?: boolean;
}

/** `what` continues "Cannot": `create topic t`. */
export function brokerFault(
  what: string,
  error: ErrorName,
  { message = null, atLeader = false }: BrokerFaultOptions = {},
): ClientFault {
  const words = message === null || message === "" ? "" : ` (${message.replace(/[\s.]+$/, "")})`;
  const hint = HINTS[error] === undefined ? "" : `: ${HINTS[error]}`;
  const exit = NOT_FOUND.has(error)
    ? CLIENT_EXIT.notFound
    : error === "REQUEST_TIMED_OUT"
    ? CLIENT_EXIT.unreachable
    : CLIENT_EXIT.failed;
  const retriable = isRetriable(error) && (atLeader || !NOT_FOUND.has(error));
  return new ClientFault(`Cannot ${what}: ${error}${words}${hint}`, { exit, retriable, error });
}

/** Throws unless the code says that all is well. */
export function checkCode(what: string, code: number, options: BrokerFaultOptions = {}): void {
  if (code !== 0) throw brokerFault(what, errorName(code), options);
}
