/** The answer to who asks for a topic that is not there. */
import { ProblemError, problemOf } from "../problem.ts";

export function unknownTopic(name: string): ProblemError {
  const message = `Cannot find topic ${name}`;
  return new ProblemError(problemOf({ ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message }));
}
