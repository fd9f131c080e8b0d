/** Apicurio's classes are those of Java 21; Debian 12 has 17, so another one beside it is looked for. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const VERSION_MIN = 21;
const INSTALLED = "/usr/lib/jvm";

function versionOf(java: string): number {
  const { stderr } = spawnSync(java, ["-version"], { encoding: "utf8", timeout: 10_000 });
  return Number(/version "(\d+)/.exec(stderr ?? "")?.[1] ?? 0);
}

/** The first that is new enough; null when there is none. */
export function newJava(): string | null {
  const home = process.env["JAVA_HOME"];
  const installed = existsSync(INSTALLED) ? readdirSync(INSTALLED) : [];
  const candidates = [
    ...(home === undefined ? [] : [join(home, "bin/java")]),
    "java",
    ...installed.toSorted().map((name) => join(INSTALLED, name, "bin/java")),
  ];
  return candidates.find((java) => versionOf(java) >= VERSION_MIN) ?? null;
}
