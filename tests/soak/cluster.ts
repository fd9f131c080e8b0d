/** What all parts of a soak share: the address, the books, the counts, and the list of what went wrong. */
import { FaultError } from "../../src/lib/errors.ts";
import type { Api } from "../../src/protocol/api.ts";
import { readResponse, requestFrame } from "../support/wire.ts";
import { RawClient } from "../e2e/raw_client.ts";
import { type PartitionBook, Violation } from "./book.ts";

const PAUSE_MS = 50;
/** One that is repeated for ever would hide the others, and fill the disk. */
const VIOLATIONS_TOLD = 100;

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

export class Soak {
  readonly address: string;
  readonly books = new Set<PartitionBook>();
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  /** Writers end first. */
  writing = true;
  /** Then readers. */
  reading = true;

  readonly #tell: (line: string) => void;

  constructor(address: string, tell: (line: string) => void = (line) => console.error(line)) {
    this.address = address;
    this.#tell = tell;
  }

  count(what: string, by = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + by);
  }

  violation(what: string): void {
    this.count("violations");
    if (this.violations.length === VIOLATIONS_TOLD) return;
    this.violations.push(`${new Date().toISOString()} ${what}`);
    this.#tell(`VIOLATION ${what}`);
  }

  /** Whatever breaks a promise is kept; faults of connections are part of the game. */
  guard(who: string, error: unknown): void {
    if (error instanceof Violation) this.violation(`${who}: ${error.message}`);
    else if (!(error instanceof FaultError || error instanceof Hangup)) {
      this.violation(`${who}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
}

/** The connection is over, for whatever reason. */
export class Hangup extends Error {}

/** One connection after the other; a call that fails ends the one that it was on. */
export class WireClient {
  readonly #address: string;
  #client: RawClient | null = null;

  constructor(address: string) {
    this.#address = address;
  }

  async call<Q, S, QIn, SOut>(api: Api<Q, S, QIn, SOut>, version: number, request: QIn) {
    await this.send(api, version, request);
    return await this.receive(api, version);
  }

  async send<Q, S, QIn, SOut>(api: Api<Q, S, QIn, SOut>, version: number, request: QIn) {
    if (this.#client === null || this.#client.isClosed) await this.#connect();
    this.#client!.send(requestFrame(api, { version, correlationId: 1 }, request));
  }

  async receive<Q, S, QIn, SOut>(api: Api<Q, S, QIn, SOut>, version: number): Promise<SOut> {
    const client = this.#client;
    const frame = client === null ? null : await client.next().catch(() => null);
    if (frame === null) {
      this.close();
      throw new Hangup("no answer");
    }
    return readResponse(api, { version, correlationId: 1 }, frame);
  }

  async #connect(): Promise<void> {
    const client = await RawClient.connect(this.#address).catch(() => null);
    if (client === null) {
      await pause(PAUSE_MS);
      throw new Hangup("no connection");
    }
    this.#client = client;
  }

  close(): void {
    this.#client?.close();
    this.#client = null;
  }
}
