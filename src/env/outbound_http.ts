/**
 * Requests that the broker sends to hosts which its users name. Whoever implements it finds the addresses of the
 * host itself, asks for each whether it may be connected to, connects to no other, and follows no redirect.
 */

export interface OutboundRequest {
  /** `http:` or `https:`, without a user. */
  readonly url: URL;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  /** Not changed before the answer is there. */
  readonly body: Uint8Array;
  /** An address as text, without brackets. */
  readonly mayConnectTo: (address: string) => boolean;
  /** Bytes of the answer's body that are read, and dropped; behind them the connection is cut. */
  readonly answerBytesMax: number;
  /** Ends it at any point. */
  readonly signal: AbortSignal;
}

export type OutboundAnswer =
  | {
    readonly ok: true;
    readonly status: number;
    readonly retryAfter: string | null;
  }
  | {
    readonly ok: false;
    /** `refused`: nothing was sent, since no address of the host may be connected to. */
    readonly kind: "refused" | "failed" | "aborted";
    /** In a few words, without addresses. */
    readonly reason: string;
  };

export interface OutboundHttp {
  /** Never throws. */
  send(request: OutboundRequest): Promise<OutboundAnswer>;
  close(): void;
}
