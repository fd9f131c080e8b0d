import assert from "node:assert/strict";
import { test } from "node:test";
import { WEBHOOKS_MAX } from "../../lib/limits.ts";
import { ProblemError } from "../problem.ts";
import { Webhooks, type WebhookSettings } from "./settings.ts";

const SETTINGS: WebhookSettings = { provider: "github", secrets: ["12345678"], toleranceS: 300 };

test("names of topics that need not be there do not fill the metadata", async () => {
  const kv = new Map<string, string>();
  for (let i = 0; i < WEBHOOKS_MAX; i++) kv.set(`webhook/t${i}`, JSON.stringify(SETTINGS));
  const webhooks = new Webhooks({
    get: (key) => kv.get(key) ?? null,
    keys: (prefix) => [...kv.keys()].filter((key) => key.startsWith(prefix)),
    onChange: () => () => {},
    change: (key, change) => {
      const text = change(kv.get(key) ?? null);
      if (text === null) kv.delete(key);
      else kv.set(key, text);
      return Promise.resolve();
    },
  });
  await assert.rejects(
    webhooks.put("new", SETTINGS),
    (error: unknown) => error instanceof ProblemError && error.problem.status === 409,
  );
  await webhooks.put("t0", { ...SETTINGS, toleranceS: 5 });
  assert.equal(webhooks.get("t0")?.toleranceS, 5);
  await webhooks.put("t0", null);
  await webhooks.put("new", SETTINGS);
  assert.equal(webhooks.get("new")?.provider, "github");
});
