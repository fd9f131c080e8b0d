/** `skerry features`: the feature level of a cluster, and what this build knows. */
import { readCluster } from "../controller/cluster.ts";
import { FEATURE_LEVEL, FEATURE_LEVEL_MIN } from "../controller/entry.ts";
import { corrupt } from "../lib/corrupt.ts";
import { VERSION } from "../lib/version.ts";
import { loadMetadata } from "../inspect/load_metadata.ts";
import { CLUSTER_KEY } from "../object/object_key.ts";
import type { Arguments } from "./args.ts";
import { EXIT } from "./exit.ts";
import { printer } from "./printer.ts";
import { configFault, isSet, openToolStore, runTool, toolEnv } from "./tool_store.ts";

export function featuresCommand(args: Arguments): Promise<number> {
  return runTool(async () => {
    const env = toolEnv();
    const store = await openToolStore(args, env, "read");
    const got = await store.get(CLUSTER_KEY);
    if (got === null) throw configFault(`There is no cluster: ${CLUSTER_KEY} is missing`);
    const { clusterId, featureLevel } = readCluster(got.bytes);
    const loaded = await loadMetadata({ store, env, clusterId });
    if (!loaded.ok) throw corrupt(`Cannot read ${loaded.key}: ${loaded.detail}`);
    const level = Math.max(featureLevel, loaded.state.featureLevel);
    const print = printer();
    if (isSet(args, "json")) {
      const answer = { clusterId, level, lowest: FEATURE_LEVEL_MIN, highest: FEATURE_LEVEL };
      await print.line(JSON.stringify({ ...answer, version: VERSION }));
    } else {
      await print.line(`Cluster ${clusterId} is at feature level ${level}.`);
      await print.line(
        `Skerry ${VERSION} knows levels ${FEATURE_LEVEL_MIN} to ${FEATURE_LEVEL}.`,
      );
    }
    await print.end();
    return EXIT.ok;
  });
}
