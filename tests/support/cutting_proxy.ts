/** A TCP proxy that cuts connections after so many bytes of the answer, in the middle of whatever is there. */
import { connect, createServer, type Socket } from "node:net";

export interface CuttingProxy {
  readonly url: string;
  /** Connections that were cut so far. */
  readonly cuts: number;
  /** Cuts no more. */
  spare(): void;
  close(): Promise<void>;
}

/** `next` says how many bytes of its answer the next connection lives for. */
export async function cuttingProxy(target: string, next: () => number): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let cuts = 0;
  let isSparing = false;
  const server = createServer((client) => {
    const upstream = connect({ host: hostname, port: Number(port) });
    let left = next();
    const end = () => {
      for (const socket of [client, upstream]) {
        socket.destroy();
        open.delete(socket);
      }
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (part) => upstream.write(part));
    upstream.on("data", (part) => {
      const chunk = part as Uint8Array;
      if (isSparing || chunk.length < left) {
        left -= chunk.length;
        return void client.write(chunk);
      }
      cuts += 1;
      client.write(chunk.subarray(0, left), end);
    });
  });
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0 }, resolve));
  const address = server.address();
  const local = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${local}`,
    get cuts() {
      return cuts;
    },
    spare: () => void (isSparing = true),
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
