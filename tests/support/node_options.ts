/** A node of its own on a store: no port opens, nothing is configured. */
import type { NodeOptions } from "../../src/node/node.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createFakeClock } from "./fake_clock.ts";
import { testEnv } from "./test_env.ts";

export function nodeOptions(store: ObjectStore, over: Partial<NodeOptions> = {}): NodeOptions {
  return {
    env: testEnv({ clock: createFakeClock() }),
    store,
    storeKind: "memory",
    storeHasPrices: false,
    listener: { listen: () => Promise.reject(new Error("no listener")) },
    serveHttp: () => Promise.reject(new Error("no server")),
    settings: {
      nodeId: 1,
      clusterId: null,
      kafkaListen: null,
      advertise: null,
      httpListen: null,
      kafka: {},
    },
    ...over,
  };
}
