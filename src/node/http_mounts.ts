/** Ports of their own for the dialects of other gateways, whose clients know no path before their routes. */
import { listOf } from "../broker/property.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import { FaultError } from "../lib/errors.ts";
import { isHealthRequest } from "../http/app.ts";
import type { HttpHost } from "../http/sockets/socket_port.ts";
import { pathOf, placeBelow } from "../http/target.ts";

const MOUNTS = ["rest", "upstash", "streams"] as const;
export type Mount = (typeof MOUNTS)[number];

const PORT_MAX = 65_535;
/** Confluent's proxy has the third version of its API beside the second, below a path. */
const BESIDE: Readonly<Partial<Record<Mount, RegExp>>> = { rest: /^\/(kafka\/)?v3(\/|$)/ };

type Handler = (request: Request, host?: HttpHost) => Response | Promise<Response>;

/** Throws FaultError `config`. */
export function mountPortsOf(
  config: BrokerConfig,
): { readonly port: number; readonly mount: Mount }[] {
  return listOf(config.text("skerry.http.mounts")).map((item) => {
    const [port, name] = item.split(":");
    const mount = MOUNTS.find((one) => one === name);
    if (mount !== undefined && Number(port) <= PORT_MAX) return { port: Number(port), mount };
    throw new FaultError("config", `Cannot use skerry.http.mounts=${item}: no such port or mount`, {
      retriable: false,
    });
  });
}

/** What comes to the root is for the mount; health is asked for at any port. */
export function atRoot(mount: Mount, handler: Handler): Handler {
  return (request, host) => {
    const isOther = isHealthRequest(request) || BESIDE[mount]?.test(pathOf(request)) === true;
    if (!isOther) placeBelow(request, `/${mount}`);
    return handler(request, host);
  };
}
