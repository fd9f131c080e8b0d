/** Reports bugs, not faults: a failed assertion means that an invariant of ours is broken. Stays on in production. */

/** Thrown by `assert` and `unreachable`; the node that sees it stops serving. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Marks a branch that the type system has ruled out. */
export function unreachable(value: never): never {
  throw new AssertionError(`Cannot happen: ${String(value)}`);
}
