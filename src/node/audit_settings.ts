/** The broker's properties of the audit as the controller takes them. */
import type { BrokerConfig } from "../broker/broker_config.ts";
import type { AuditOptions } from "../controller/auditor.ts";

/** Null when it is off. */
export function auditOf(config: BrokerConfig): AuditOptions | null {
  if (!config.flag("skerry.audit.enable")) return null;
  return {
    intervalMs: config.integer("skerry.audit.interval.ms"),
    requestsPerSecond: config.integer("skerry.audit.requests.per.second"),
    deletes: config.flag("skerry.audit.delete"),
  };
}
