/** The answers to what comes over a WebSocket: records are appended in the order of their messages, and acknowledged in the same. */
import { messageOf } from "../../lib/errors.ts";
import { HTTP_SOCKET_PRODUCES_MAX } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import { type Problem, ProblemError, problemText } from "../problem.ts";
import { resultOf } from "../produce/answer_produce.ts";
import type { ProduceServices } from "../produce/held_request.ts";
import type { MessageId, ProduceMessage } from "./topic_messages.ts";

const INTERNAL: Problem = {
  status: 500,
  title: "Internal error",
  detail: "Cannot answer: the broker logged why",
};

function errorText(problem: Problem, id: MessageId): string {
  const error = `{"error":${problemText(problem)}`;
  return id === undefined ? `${error}}` : `${error},"id":${JSON.stringify(id)}}`;
}

export class TopicWriter {
  readonly #services: Pick<ProduceServices, "gateway" | "env">;
  readonly #topic: string;
  /** Resolves when there is room for the next text. Never rejects. */
  readonly #send: (text: string) => Promise<void>;
  readonly #slots = new Semaphore(HTTP_SOCKET_PRODUCES_MAX);
  /** The last answer has left. */
  #sent: Promise<void> = Promise.resolve();

  constructor(
    services: Pick<ProduceServices, "gateway" | "env">,
    topic: string,
    send: (text: string) => Promise<void>,
  ) {
    this.#services = services;
    this.#topic = topic;
    this.#send = send;
  }

  /** A place among the messages that are not answered; an answer frees it. Rejects at the signal. */
  slot(signal: AbortSignal): Promise<void> {
    return this.#slots.acquire(1, signal);
  }

  freeSlot(): void {
    this.#slots.release();
  }

  refuse(id: MessageId, problem: Problem): void {
    this.#answer(Promise.resolve(errorText(problem, id)));
  }

  /** Resolves when the records have their places, so that the next ones come behind them. */
  async write(message: ProduceMessage, release: () => void): Promise<void> {
    let admit = (): void => {};
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    this.#answer(
      this.#produce(message, admit).finally(() => {
        release();
        admit();
      }),
    );
    await admitted;
  }

  /** The text must not reject. */
  #answer(text: Promise<string>): void {
    const before = this.#sent;
    this.#sent = (async () => {
      const [answer] = await Promise.all([text, before]);
      await this.#send(answer);
      this.freeSlot();
    })();
  }

  async #produce(
    { id, idempotencyKey, records }: ProduceMessage,
    onAdmitted: () => void,
  ): Promise<string> {
    const { gateway, env } = this.#services;
    const options = idempotencyKey === undefined ? {} : { idempotencyKey };
    try {
      const written = await gateway.produce(this.#topic, records, { ...options, onAdmitted });
      return JSON.stringify({ ack: id ?? null, results: written.map(resultOf) });
    } catch (error) {
      if (error instanceof ProblemError) return errorText(error.problem, id);
      env.log.log("error", "http-handler-failed", { error: messageOf(error) });
      return errorText(INTERNAL, id);
    }
  }
}
