/** Installs the packages when they are missing or older than the lock file. Runs on Node alone. */
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";

const STAMP = "node_modules/.package-lock.json";

function upToDate() {
  return existsSync(STAMP) && statSync(STAMP).mtimeMs >= statSync("package-lock.json").mtimeMs;
}

if (!upToDate()) {
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const result = spawnSync(npm, ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    stdio: ["ignore", "inherit", "inherit"],
    shell: process.platform === "win32",
  });
  if (result.status !== 0) process.exit(result.status ?? 1);
}
