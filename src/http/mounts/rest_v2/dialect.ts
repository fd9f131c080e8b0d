/** Whose details a client knows: Confluent's REST Proxy, Strimzi's bridge or Redpanda's proxy. */
import { parameter, queryOf } from "../../query.ts";
import { DIALECTS, type InstanceRecord } from "../instances/record.ts";
import { restError } from "./shape.ts";

export type Dialect = InstanceRecord["dialect"];

/** By `?dialect=`, else as given. */
export function dialectOf(request: Request, fallback: Dialect): Dialect {
  const text = parameter(queryOf(request), "dialect");
  if (text === null) return fallback;
  const found = DIALECTS.find((one) => one === text);
  if (found !== undefined) return found;
  throw restError(400, `Cannot use dialect: not ${DIALECTS.join(" or ")}`, 400);
}
