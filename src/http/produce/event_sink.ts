/** POST /ce/{topic}: a sink for CloudEvents, which answers nothing but that they are stored. */
import * as v from "valibot";
import { ProblemError } from "../problem.ts";
import { answerProduce } from "./answer_produce.ts";
import { isEvent } from "./cloud_events.ts";
import { HeldRequest, type ProduceServices } from "./held_request.ts";
import { partition } from "./parameters.ts";
import { write } from "./produce.ts";

export const eventsQuery = v.strictObject({ partition });

/** A sender that has sent several looks at the status alone, and sends all of them again. */
export async function produceEvents(
  services: ProduceServices,
  request: Request,
  topic: string,
  query: v.InferOutput<typeof eventsQuery>,
): Promise<Response> {
  if (!isEvent(request)) {
    throw new ProblemError({
      status: 415,
      title: "Unsupported media type",
      detail: "Cannot read the body: no CloudEvent, neither binary nor as JSON",
    });
  }
  const held = await HeldRequest.read(services, request);
  try {
    const { results, options } = await write(services, held, { topic, partition: null }, query);
    const failures = results.filter((result) => !result.ok);
    if (failures.length === 0) {
      held.release();
      return new Response(null, { status: 204 });
    }
    const { clock } = services.env;
    const release = () => held.release();
    return answerProduce({ results: failures, options, request, clock, release });
  } catch (error) {
    held.release();
    throw error;
  }
}
