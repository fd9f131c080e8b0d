/** What happens to the broker and to its store, one thing after the other, and always mended. */
import { type Random, randomInt } from "../../src/env/random.ts";
import type { Broker } from "./broker.ts";
import { pause, type Soak } from "./cluster.ts";
import type { S3Proxy, Trouble } from "./s3_proxy.ts";
import type { StoreServer } from "./store_server.ts";

export interface NemesisOptions {
  readonly broker: Broker;
  /** Null on a directory. */
  readonly proxy: S3Proxy | null;
  readonly server: StoreServer | null;
  /** It may be killed: what it acknowledged is on disk. */
  readonly serverMayDie: boolean;
  readonly random: Random;
}

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "store refuses everything": { refuse: 1 },
  "store refuses a third": { refuse: 0.33 },
  "store cuts connections": { cut: 0.5 },
  "store swallows answers": { swallow: 0.3 },
  "store halves answers": { halve: 0.3 },
  "store is slow": { delayMs: 800 },
  "store is bad in every way": { refuse: 0.1, cut: 0.1, swallow: 0.1, halve: 0.1, delayMs: 300 },
};

/** Where it may end, the broker's process ends this often. */
const ENDS_SHARE = 0.6;

type Act = () => Promise<void>;

export class Nemesis {
  readonly #soak: Soak;
  readonly #options: NemesisOptions;

  constructor(soak: Soak, options: NemesisOptions) {
    this.#soak = soak;
    this.#options = options;
  }

  /** Until the time is over; `mayRestart`: the broker's process may end. */
  async run(ms: number, { everyMs, mayRestart }: { everyMs: number; mayRestart: boolean }) {
    const endMs = performance.now() + ms;
    while (performance.now() < endMs) {
      await pause(
        Math.min(everyMs / 2 + randomInt(this.#options.random, everyMs), endMs - performance.now()),
      );
      if (performance.now() >= endMs) break;
      const ends = mayRestart && this.#options.random.float() < ENDS_SHARE;
      const acts = ends ? { ...this.#restarts(), ...this.#kills() } : this.#acts();
      const names = Object.keys(acts);
      const name = names[randomInt(this.#options.random, names.length)]!;
      this.#soak.count(`nemesis: ${name}`);
      await acts[name]!();
    }
  }

  #acts(): Record<string, Act> {
    const { broker, server, serverMayDie, random } = this.#options;
    const acts: Record<string, Act> = {
      "broker stands still": async () => {
        broker.signal("SIGSTOP");
        await pause(500 + randomInt(random, 2_500));
        broker.signal("SIGCONT");
      },
    };
    if (server !== null) {
      acts["store stands still"] = async () => {
        server.signal("SIGSTOP");
        await pause(1_000 + randomInt(random, 4_000));
        server.signal("SIGCONT");
      };
      if (serverMayDie) acts["store is killed"] = () => server.restart();
      for (const [name, trouble] of Object.entries(TROUBLES)) {
        acts[name] = () => this.#trouble(trouble, 1_000 + randomInt(random, 3_000));
      }
    }
    return acts;
  }

  async #trouble(trouble: Trouble, ms: number): Promise<void> {
    const proxy = this.#options.proxy!;
    proxy.trouble = trouble;
    await pause(ms);
    proxy.trouble = {};
  }

  #restarts(): Record<string, Act> {
    const { broker } = this.#options;
    return {
      "broker is stopped": async () => {
        const code = await broker.stop();
        if (code !== 0) this.#soak.violation(`the broker stopped with ${code}`);
        await broker.start();
      },
    };
  }

  /** More than one name, since these are what it is about. */
  #kills(): Record<string, Act> {
    const { broker, proxy, random } = this.#options;
    return {
      "broker is killed": async () => {
        await broker.kill9();
        await broker.start();
      },
      "broker is killed, and while it starts": async () => {
        await broker.kill9();
        for (let i = 1 + randomInt(random, 3); i > 0; i--) {
          await broker.crashStart(100 + randomInt(random, 700));
        }
        await broker.start();
      },
      "broker is killed while the store is in trouble": async () => {
        if (proxy !== null) proxy.trouble = { swallow: 0.4, delayMs: 200 };
        await pause(300 + randomInt(random, 1_000));
        await broker.kill9();
        if (proxy !== null) proxy.trouble = { refuse: 0.2 };
        await broker.start();
        if (proxy !== null) proxy.trouble = {};
      },
      "broker is killed after a while": async () => {
        await broker.kill9();
        await pause(randomInt(random, 3_000));
        await broker.start();
      },
    };
  }
}
