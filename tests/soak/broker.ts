/** The one broker of a soak, through all of its processes: what they printed is kept, how they end is checked. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type BrokerProcess, crashStart, startBroker } from "../support/broker_process.ts";
import { pause, type Soak } from "./cluster.ts";

/** A store that is in trouble holds up a start for 20 s, and then it is given up; then again. */
const STARTS_MAX = 5;
/** Lines that say that something is lost, or that there is a bug. */
const ALARMING = /"level":"error"/;
const ALARMS_MAX = 20;

export interface BrokerPlace {
  readonly binary: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly kafka: string;
  readonly http: string;
  readonly logs: string;
}

export class Broker {
  readonly #place: BrokerPlace;
  #soak: Soak | null = null;
  #process: BrokerProcess | null = null;
  #number = 0;
  #ending = false;
  /** When the present process got ready, by the clock of the test; NaN while there is none. */
  sinceMs = Number.NaN;

  constructor(place: BrokerPlace) {
    this.#place = place;
    mkdirSync(place.logs, { recursive: true });
  }

  watchedBy(soak: Soak): void {
    this.#soak = soak;
  }

  get pid(): number | null {
    return this.#process?.pid ?? null;
  }
  get http(): string {
    return `http://${this.#place.http}`;
  }
  get kafka(): string {
    return this.#place.kafka;
  }
  get #words(): string[] {
    const { args, kafka, http } = this.#place;
    return [...args, "--kafka-listen", kafka, "--http-listen", http];
  }

  async start(): Promise<void> {
    const { env, binary } = this.#place;
    this.#number += 1;
    this.#ending = false;
    for (let attempt = 1;; attempt++) {
      try {
        const started = performance.now();
        const broker = await startBroker({ args: this.#words, env, binary });
        this.#process = broker;
        this.sinceMs = performance.now();
        const ms = Math.round(this.sinceMs - started);
        const slowest = this.#soak?.counts.get("slowest start, ms") ?? 0;
        this.#soak?.counts.set("slowest start, ms", Math.max(ms, slowest));
        broker.exited.then((code) => this.#exited(broker, code), () => {});
        return;
      } catch (error) {
        this.#keep(`start-${this.#number}-${attempt}`, String(error));
        this.#soak?.count("starts that failed");
        if (attempt === STARTS_MAX) throw error;
        await pause(500);
      }
    }
  }

  #exited(broker: BrokerProcess, code: number | null): void {
    const output = broker.output();
    this.#keep(String(this.#number), output);
    for (
      const line of output.split("\n").filter((each) => ALARMING.test(each)).slice(0, ALARMS_MAX)
    ) {
      this.#soak?.violation(`broker ${this.#number} logs ${line}`);
    }
    if (!this.#ending) this.#soak?.violation(`broker ${this.#number} ended by itself with ${code}`);
  }

  #keep(name: string, output: string): void {
    writeFileSync(join(this.#place.logs, `broker-${name.padStart(3, "0")}.log`), output);
  }

  #take(): BrokerProcess {
    const broker = this.#process;
    if (broker === null) throw new Error("there is no broker to end");
    this.#ending = true;
    this.#process = null;
    this.sinceMs = Number.NaN;
    return broker;
  }

  async kill9(): Promise<void> {
    await this.#take().kill9();
  }

  async stop(): Promise<number | null> {
    return await this.#take().stop();
  }

  /** Starts one that is killed before it is ready, or just after. */
  async crashStart(ms: number): Promise<void> {
    const { env, binary } = this.#place;
    await crashStart({ args: this.#words, env, binary }, ms);
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    const { pid } = this;
    if (pid !== null) process.kill(pid, name);
  }
}
