/** What share groups are run by: a group's own settings over the broker's. Read anew each time: they may change. */
import { type GroupConfigServices, groupInteger, groupText } from "../../group_configs.ts";

/** Where a share group begins in a partition that it has not read before. */
export type ShareReset =
  | { readonly kind: "earliest" | "latest" }
  | { readonly kind: "by_duration"; readonly durationMs: number };

export interface ShareGroupSettings {
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly autoOffsetReset: ShareReset;
  readonly isolation: "read_committed" | "read_uncommitted";
  readonly recordLockDurationMs: number;
  readonly deliveryCountLimit: number;
  readonly recordLocksMax: number;
}

export interface ShareMembership {
  settingsOf(groupId: string): ShareGroupSettings;
}

const BY_DURATION = "by_duration:";
const DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d*))?S)?)?$/i;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Of a text that the property's own check let through. */
function durationMs(text: string): number {
  const [, days, hours, minutes, seconds, fraction = ""] = DURATION.exec(text) ?? [];
  return Number(days ?? 0) * DAY_MS + Number(hours ?? 0) * HOUR_MS +
    Number(minutes ?? 0) * MINUTE_MS + Number(seconds ?? 0) * 1000 +
    Math.trunc(Number(`0.${fraction === "" ? "0" : fraction}`) * 1000);
}

export function readReset(text: string): ShareReset {
  if (text.startsWith(BY_DURATION)) {
    return { kind: "by_duration", durationMs: durationMs(text.slice(BY_DURATION.length)) };
  }
  return { kind: text === "earliest" ? "earliest" : "latest" };
}

export function createShareMembership(services: GroupConfigServices): ShareMembership {
  const { config } = services;
  return {
    settingsOf(groupId) {
      const integer = (name: string) => groupInteger(services, groupId, name);
      const isolation = groupText(services, groupId, "share.isolation.level");
      return {
        sessionTimeoutMs: integer("share.session.timeout.ms"),
        heartbeatIntervalMs: integer("share.heartbeat.interval.ms"),
        autoOffsetReset: readReset(groupText(services, groupId, "share.auto.offset.reset")),
        isolation: isolation === "read_committed" ? isolation : "read_uncommitted",
        recordLockDurationMs: integer("share.record.lock.duration.ms"),
        deliveryCountLimit: config.integer("group.share.delivery.count.limit"),
        recordLocksMax: config.integer("group.share.partition.max.record.locks"),
      };
    },
  };
}
