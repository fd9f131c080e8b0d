/** Standard output in large pieces, waited for: a slow reader holds up the tool, not its memory. */

const PIECE_CHARS = 64 * 1024;

export interface Printer {
  text(text: string): Promise<void>;
  line(line: string): Promise<void>;
  /** Everything has left. */
  end(): Promise<void>;
}

/** Nobody reads standard output any more. */
export class PipeClosed extends Error {
  override readonly name = "PipeClosed";
}

function failureOf(error: Error): Error {
  return "code" in error && error.code === "EPIPE"
    ? new PipeClosed("standard output", { cause: error })
    : error;
}

/** Resolves once standard output has taken the text or bytes. Rejects with PipeClosed when nobody will. */
export function writeOut(data: string | Uint8Array): Promise<void> {
  // Each write tells its own failure.
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", () => {});
  return new Promise((resolve, reject) => {
    process.stdout.write(data, (error) => error ? reject(failureOf(error)) : resolve());
  });
}

export function printer(write: (text: string) => Promise<void> = writeOut): Printer {
  let waiting = "";
  async function flush(): Promise<void> {
    const text = waiting;
    waiting = "";
    if (text !== "") await write(text);
  }
  const print: Printer = {
    async text(text) {
      waiting += text;
      if (waiting.length >= PIECE_CHARS) await flush();
    },
    line: (line) => print.text(`${line}\n`),
    end: flush,
  };
  return print;
}
