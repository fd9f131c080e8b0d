/**
 * The few members of Bun and Deno that the adapters touch, declared by hand: each runtime's own types
 * would claim the globals of the other.
 */

export type FetchHandler = (request: Request) => Response | Promise<Response>;

interface BunServer {
  readonly port: number;
  /** Stops accepting and resolves when all requests are answered; `true` cuts them off. */
  stop(closeActiveConnections?: boolean): Promise<void>;
}

export interface BunRuntime {
  serve(options: {
    readonly hostname: string;
    readonly port: number;
    /** Must be said: left out, one process can bind the same port twice (Bun 1.4). */
    readonly reusePort: false;
    /** Seconds without traffic until a connection is closed. */
    readonly idleTimeout: number;
    readonly maxRequestBodySize: number;
    readonly development: false;
    readonly fetch: FetchHandler;
  }): BunServer;
}

export interface DenoServeInfo {
  /** Resolves when the answer has been delivered, rejects when the client went away before. */
  readonly completed: Promise<void>;
}

interface DenoServer {
  readonly addr: { readonly port: number };
  /** Stops accepting and resolves when all requests are answered. */
  shutdown(): Promise<void>;
}

export interface DenoRuntime {
  serve(
    options: {
      readonly hostname: string;
      readonly port: number;
      readonly onListen: () => void;
    },
    handler: (request: Request, info: DenoServeInfo) => Promise<Response>,
  ): DenoServer;
}

/** Undefined on other runtimes. */
export function bunRuntime(): BunRuntime | undefined {
  return (globalThis as unknown as { Bun?: BunRuntime }).Bun;
}

export function denoRuntime(): DenoRuntime | undefined {
  return (globalThis as unknown as { Deno?: DenoRuntime }).Deno;
}
