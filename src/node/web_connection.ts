/** A Web stream pair as a connection: a Deno socket, a Workers socket, a WebSocket stream. */
import type { Connection } from "../env/listener.ts";

export interface StreamPair {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

export function webConnection({ readable, writable }: StreamPair): Connection {
  const reader = readable.getReader();
  const writer = writable.getWriter();
  let closed = false;
  return {
    remote: "stream:0",
    async read() {
      for (;;) {
        const next = await reader.read();
        if (next.done) return null;
        if (next.value.length > 0) return next.value;
      }
    },
    async write(bytes) {
      await writer.ready;
      // A stream may hand the chunk on by reference, and fetch answers view memory that is used again.
      await writer.write(bytes.slice());
    },
    close() {
      if (closed) return;
      closed = true;
      // Both ends may be gone already, which is what closing is for.
      reader.cancel().catch(() => {});
      writer.close().catch(() => writer.abort().catch(() => {}));
    },
  };
}
