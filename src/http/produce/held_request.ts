/** What a produce request holds while it is served: its body, and permits for what becomes of it. */
import type { Env } from "../../env/env.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import { producedBytes } from "../body.ts";
import { takePermits } from "../permit_wait.ts";
import type { Gateway } from "../port.ts";
import { type BodyRooms, type HeldBody, readBody } from "../read_body.ts";

export interface ProduceServices {
  readonly gateway: Gateway;
  readonly env: Env;
  readonly rooms: BodyRooms;
  /** Of the whole node, shared with the Kafka side. */
  readonly producePermits: Semaphore;
}

/** Where a request goes: null is any partition, by the keys of the records. */
export interface Target {
  readonly topic: string;
  readonly partition: number | null;
}

/** A body with the permits for what becomes of it: they come before the parser, which makes more of it. */
export class HeldRequest {
  readonly request: Request;
  readonly body: HeldBody;
  readonly #permits: Semaphore;
  #bytes: number;

  private constructor(request: Request, body: HeldBody, permits: Semaphore, bytes: number) {
    this.request = request;
    this.body = body;
    this.#permits = permits;
    this.#bytes = bytes;
  }

  static async read(services: ProduceServices, request: Request): Promise<HeldRequest> {
    const { rooms, producePermits, env } = services;
    const body = await readBody(request, rooms);
    const bytes = producedBytes(request, body.bytes.length);
    try {
      await takePermits(producePermits, bytes, env.clock, request);
    } catch (error) {
      body.release();
      throw error;
    }
    return new HeldRequest(request, body, producePermits, bytes);
  }

  /** The room of the body stays: it stands for the answer too, since a record more is a result more. */
  releasePermits(): void {
    this.#permits.release(this.#bytes);
    this.#bytes = 0;
  }

  release(): void {
    this.releasePermits();
    this.body.release();
  }
}
