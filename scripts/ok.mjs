/**
 * The one command that says yes or no: format, lint, types, layers, tests on Bun and on Deno, the
 * compiled file end to end. Cheap checks first; stops at the first failure. Runs on Node alone.
 */
import { spawnSync } from "node:child_process";

const bin = (name) => `node_modules/.bin/${name}`;
const DENO_ENV = { DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" };

const steps = [
  ["format", bin("deno"), ["fmt", "--check", "--quiet"]],
  ["lint", bin("oxlint"), ["--type-aware"]],
  ["types of the core", bin("tsc"), ["-p", "tsconfig.core.json"]],
  ["types", bin("tsc"), ["-p", "tsconfig.json"]],
  ["compile", "./compile.sh", []],
  ["tests on Bun", bin("bun"), ["test", "--timeout", "120000", "src", "tests"]],
  ["tests on Deno", bin("deno"), ["test", "-A", "--no-check", "--quiet", "src", "tests"]],
];

const only = process.argv.slice(2);
let passed = 0;
for (const [name, command, args] of steps) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
  const started = performance.now();
  console.log(`\n== ${name}`);
  const result = spawnSync(command, args, {
    stdio: "inherit",
    env: { ...process.env, ...DENO_ENV },
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (result.status !== 0) {
    console.error(`== ${name}: failed after ${seconds} s`);
    console.log(`${passed} passed, 1 failed`);
    process.exit(1);
  }
  passed += 1;
  console.log(`== ${name}: ok, ${seconds} s`);
}
console.log(`${passed} passed, 0 failed`);
