/** For tests of what has nothing to do with pushing records, nor with webhooks. */
import { Semaphore } from "../../src/lib/semaphore.ts";
import type { Gateway } from "../../src/http/port.ts";
import { Push } from "../../src/http/push/push.ts";
import { Webhooks } from "../../src/http/webhook/settings.ts";
import { createMemoryTexts } from "./memory_texts.ts";
import { testEnv } from "./test_env.ts";

export function noPush(gateway: Gateway): { readonly push: Push; readonly webhooks: Webhooks } {
  const texts = createMemoryTexts();
  const push = new Push({
    env: testEnv(),
    gateway,
    texts,
    groups: {
      commit: () => Promise.resolve([]),
      committed: () => Promise.resolve({ ok: true, offsets: [] }),
      describeGroup: () => Promise.resolve({ ok: false, error: "GROUP_ID_NOT_FOUND" }),
      leads: () => Promise.resolve(false),
    },
    outbound: null,
    sign: () => Promise.resolve(""),
    producePermits: new Semaphore(1),
    rules: () => ({ isLoopbackAllowed: false }),
  });
  return { push, webhooks: new Webhooks(texts) };
}
