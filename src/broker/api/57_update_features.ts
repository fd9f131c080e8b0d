/**
 * UpdateFeatures (key 57), versions 0-2.
 * Behaviour: sets the levels of features for the whole cluster, all that are named or none. A level that this
 * broker does not know, and a lower one without leave to go down, is INVALID_UPDATE_VERSION. Level 0 turns a
 * feature off.
 * Deviations: `metadata.version` and the like do not exist; the level of what is stored is raised by
 * skerry.feature.level.
 * Version notes: 0 has a flag for going down · 1 kinds of change, validate only (KIP-778) · 2 one error for all.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  updateFeaturesApi,
  type UpdateFeaturesRequest,
  type UpdateFeaturesResponse,
} from "../../protocol/message/57_update_features.ts";
import { refuse } from "../config_target.ts";
import { faultToCode } from "../fault_to_code.ts";
import { FEATURES, setFeatureLevels } from "../features.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { repeatedIn } from "../many.ts";
import type { TopicOutcome, TopicRefused } from "../topics.ts";

type Asked = UpdateFeaturesRequest["featureUpdates"][number];

const UP = 1;
const SAFELY_DOWN = 2;
const UNSAFELY_DOWN = 3;
const KINDS_SINCE = 1;

function kindOf({ allowDowngrade, upgradeType }: Asked, version: number): number {
  if (version >= KINDS_SINCE) return upgradeType;
  return allowDowngrade ? SAFELY_DOWN : UP;
}

function problemOf(services: BrokerServices, asked: Asked, version: number): string | null {
  const { feature, maxVersionLevel: level } = asked;
  const kind = kindOf(asked, version);
  if (kind < UP || kind > UNSAFELY_DOWN) {
    return "The controller does not support the given upgrade type.";
  }
  if (level < 0) return "A feature version cannot be less than 0.";
  const known = FEATURES.find(({ name }) => name === feature);
  if (known === undefined) return "This broker does not support this feature.";
  if (level < known.min || level > known.max) {
    return `This broker supports versions ${known.min}-${known.max}`;
  }
  const now = services.features.levelOf(known.name);
  if (level < now && kind === UP) {
    return "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.";
  }
  return level > now && kind !== UP ? "Can't downgrade to a newer version." : null;
}

function check(
  services: BrokerServices,
  updates: readonly Asked[],
  version: number,
): TopicRefused | null {
  if (repeatedIn(updates.map(({ feature }) => feature)).size > 0) {
    return refuse("INVALID_REQUEST", "A feature is given twice");
  }
  for (const asked of updates) {
    const problem = problemOf(services, asked, version);
    if (problem === null) continue;
    const { feature, maxVersionLevel } = asked;
    const of = `update version ${maxVersionLevel} for feature ${feature.slice(0, 60)}`;
    return refuse("INVALID_UPDATE_VERSION", `Invalid ${of}. ${problem}`);
  }
  return null;
}

async function update(
  services: BrokerServices,
  { featureUpdates, validateOnly }: UpdateFeaturesRequest,
  version: number,
): Promise<TopicOutcome> {
  const refused = check(services, featureUpdates, version);
  if (refused !== null) return refused;
  if (validateOnly) return { ok: true };
  const levels = new Map(featureUpdates.map((one) => [one.feature, one.maxVersionLevel]));
  try {
    const failed = await setFeatureLevels(services.metadata, levels);
    if (failed !== null) return failed;
    const fields = Object.fromEntries(levels);
    services.env.log.log("info", "features-updated", { levels: JSON.stringify(fields) });
    return { ok: true };
  } catch (error) {
    return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
  }
}

export function updateFeaturesHandler(
  services: BrokerServices,
): Handler<UpdateFeaturesRequest, UpdateFeaturesResponse> {
  return {
    api: updateFeaturesApi,
    min: 0,
    max: 2,
    async handle(request, { version }) {
      const outcome = await update(services, request, version);
      const none = { errorCode: errorCode("NONE"), errorMessage: null };
      if (outcome.ok) {
        const results = request.featureUpdates.map(({ feature }) => ({ feature, ...none }));
        return { throttleTimeMs: 0, ...none, results };
      }
      return {
        throttleTimeMs: 0,
        errorCode: errorCode(outcome.error),
        errorMessage:
          `The update failed for all features since the following feature had an error: ${outcome.message}`,
        results: [],
      };
    },
  };
}
