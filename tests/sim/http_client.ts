/**
 * An HTTP client in the simulated world: requests of their own, in no order among each other, with latency, lost
 * answers and a time-out after which it hangs up. It reaches the node's own handler, as a server of the host would.
 */
import { isFault } from "../../src/lib/errors.ts";
import type { Random } from "../../src/env/random.ts";
import type { Cluster, HttpServer } from "./cluster.ts";
import { NoAnswer } from "./kafka_client.ts";
import { chance, type World } from "./world.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  /** Epoch of the process that answered. */
  readonly by: number;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Open {
  readonly server: HttpServer;
  readonly hangUp: AbortController;
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (why: string) => void;
}

export class HttpClient {
  readonly #world: World;
  readonly #cluster: Cluster;
  readonly #name: string;
  readonly #random: Random;
  #count = 0;

  constructor(world: World, cluster: Cluster, name: string) {
    this.#world = world;
    this.#cluster = cluster;
    this.#name = name;
    this.#random = world.random(`${name} http`);
  }

  /** Throws NoAnswer. */
  call(call: HttpCall, timeoutMs: number): Promise<HttpAnswer> {
    const world = this.#world;
    const server = this.#cluster.http();
    if (server === null) return Promise.reject(new NoAnswer("connection refused"));
    const what = `${this.#name} #${++this.#count} ${call.method}`;
    world.note(`${what} asks ${server.process.name} ${call.path}`);
    return new Promise((resolve, reject) => {
      const hangUp = new AbortController();
      let isOver = false;
      const end = (work: () => void) => {
        if (isOver) return;
        isOver = true;
        cancel();
        work();
      };
      const fail = (why: string) =>
        end(() => {
          world.note(`${what} gets no answer: ${why}`);
          server.process.deliver(() => hangUp.abort());
          reject(new NoAnswer(why));
        });
      const cancel = world.after(timeoutMs, () => fail("time-out"));
      server.process.onDeath(() => world.after(this.#trip(server), () => fail("disconnected")));
      const open: Open = {
        server,
        hangUp,
        reject: fail,
        resolve: (answer) =>
          end(() => {
            world.note(`${what} is answered ${answer.status}, ${answer.text.length} characters`);
            resolve(answer);
          }),
      };
      world.after(this.#trip(server), () => server.process.deliver(() => this.#arrive(call, open)));
    });
  }

  #trip({ net }: HttpServer): number {
    return net.latencyMs * (0.3 + this.#random.float() * 1.4);
  }

  #arrive({ method, path, headers = {}, body }: HttpCall, open: Open): void {
    const { server, hangUp, resolve, reject } = open;
    this.#world.linger();
    const request = new Request(`http://192.0.2.1:8080${path}`, {
      method,
      headers: { ...headers },
      signal: hangUp.signal,
      ...(body === undefined ? {} : { body }),
    });
    const answered = async () => {
      const response = await server.answer(request);
      this.#world.linger();
      const text = await response.text();
      if (!server.process.alive) return;
      const by = this.#cluster.epochOf(server.process);
      const isLost = chance(this.#random, server.net.reset);
      const { status, headers: answerHeaders } = response;
      this.#world.after(this.#trip(server), () => {
        if (isLost) reject("the answer is lost");
        else resolve({ status, text, headers: answerHeaders, by });
      });
    };
    answered().catch((error: unknown) => {
      // A start that fails takes the requests along that wait for its end; a server then hangs up.
      if (!isFault(error)) this.#world.violated(`HTTP handler throws: ${error}`);
      else this.#world.after(this.#trip(server), () => reject("hung up"));
    });
  }
}
