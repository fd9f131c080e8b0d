import { nodeListener } from "../../src/adapters/node_net.ts";
import { listenerContract } from "./listener.ts";

listenerContract("node:net", nodeListener);
