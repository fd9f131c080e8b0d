/** Which topics there are. */
import { SkerryError, wrongAnswer } from "./errors.ts";
import { type Ask, type Http, postJson, segment } from "./http.ts";
import { retrying } from "./retry.ts";

export interface TopicInfo {
  readonly name: string;
  /** A topic that is deleted and created again has another one. */
  readonly topicId: string;
  readonly partitions: number;
}

export interface NewTopic {
  readonly name: string;
  /** As the broker has it set, if it is missing. */
  readonly partitions?: number;
  /** Kafka's settings of topics. */
  readonly configs?: Readonly<Record<string, string | number | boolean>>;
}

const RETRY_FOR_MS = 60_000;
const NOT_FOUND = 404;

export class Topics {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  async list(): Promise<readonly TopicInfo[]> {
    const { topics } = await this.#request({ method: "GET", path: "topics" }, true);
    if (!Array.isArray(topics)) throw wrongAnswer("topics are missing");
    return topics as readonly TopicInfo[];
  }

  /** Null for one that is not there. */
  async describe(name: string): Promise<TopicInfo | null> {
    try {
      const found = await this.#request({ method: "GET", path: `topics/${segment(name)}` }, true);
      return found as unknown as TopicInfo;
    } catch (error) {
      if (error instanceof SkerryError && error.status === NOT_FOUND) return null;
      throw error;
    }
  }

  /** Throws SkerryError `TOPIC_ALREADY_EXISTS`; not tried again where that could be our own. */
  async create(topic: NewTopic): Promise<TopicInfo> {
    return await this.#request(postJson("topics", topic), false) as unknown as TopicInfo;
  }

  /** Throws SkerryError for one that is not there. */
  async delete(name: string): Promise<void> {
    await this.#request({ method: "DELETE", path: `topics/${segment(name)}` }, false);
  }

  async #request(ask: Ask, isRepeatable: boolean) {
    const retry = { forMs: RETRY_FOR_MS, isRepeatable };
    return (await retrying(this.#http.host, retry, () => this.#http.request(ask))).json;
  }
}
