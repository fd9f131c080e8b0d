/** Why a port cannot be opened, in words: the operator has to change the configuration. */
import { FaultError, messageOf } from "../lib/errors.ts";

/** By the system's error code, or by the name of Deno's error class. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  AddrInUse: "the port is in use",
  EACCES: "no permission for this port",
  PermissionDenied: "no permission for this port",
  EADDRNOTAVAIL: "this machine does not have the address",
  AddrNotAvailable: "this machine does not have the address",
  ENOTFOUND: "the host name is unknown",
};

export function listenFault(host: string, port: number, cause: unknown): FaultError {
  const { code, name }: { code?: unknown; name?: unknown } = cause instanceof Error ? cause : {};
  const why = REASONS[String(code)] ?? REASONS[String(name)] ?? messageOf(cause);
  return new FaultError("config", `Cannot listen on ${host}:${port}: ${why}`, {
    retriable: false,
    cause,
  });
}
