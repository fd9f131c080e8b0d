/** What a command is made of. */
import type { Cluster } from "../client/cluster.ts";
import type { Io } from "./io.ts";
import type { Syntax, Words } from "./syntax.ts";

export interface Call {
  readonly words: Words;
  readonly cluster: Cluster;
  readonly io: Io;
}

export interface Command extends Syntax {
  /** The exit code. Throws ClientFault and WordFault. */
  run(call: Call): Promise<number>;
}
