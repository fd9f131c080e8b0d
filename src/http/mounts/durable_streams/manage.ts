/** PUT creates a stream, HEAD tells of one, DELETE removes it. */
import { ProblemError, problemOf } from "../../problem.ts";
import { HeldRequest } from "../../produce/held_request.ts";
import { expectStepped } from "./append.ts";
import { kindOf, valuesOf } from "./content.ts";
import { conflict, notFound, positionHeaders, termsHeaders } from "./headers.ts";
import {
  configsOfFork,
  forkIn,
  type ForkPlan,
  inheritSettings,
  isSameFork,
  planFork,
} from "./fork.ts";
import { findPlace, type Found, type Named, type StreamsServices } from "./place.ts";
import type { StreamTail } from "./port.ts";
import { configsOf, isSame, settingsOf, type StreamSettings, withDefaults } from "./settings.ts";

export async function tailOf({ gateway }: StreamsServices, place: Found): Promise<StreamTail> {
  const tail = await gateway.streamTail(place);
  if (tail.ok) return tail;
  throw new ProblemError(problemOf(tail));
}

interface Plan {
  readonly settings: StreamSettings;
  readonly fork: ForkPlan | null;
}

async function planOf(services: StreamsServices, request: Request): Promise<Plan> {
  const [asked, ask] = [settingsOf(request), forkIn(request)];
  if (ask === null) return { settings: withDefaults(asked), fork: null };
  const fork = await planFork(services, request, ask);
  return { settings: inheritSettings(asked, fork), fork };
}

/** The fork goes again where its source went while it came. */
async function checkSource(
  { gateway }: StreamsServices,
  name: string,
  { source }: ForkPlan,
): Promise<void> {
  const found = gateway.streamById(source.topicId);
  if (found !== null && !found.isDeleted) return;
  const made = gateway.findStream(name);
  if (made !== null) await gateway.removeStream(made.topicId);
  throw notFound(`Cannot find stream ${source.stream.name}`);
}

/** Whether it was this request that created it. */
async function ensure(
  services: StreamsServices,
  { topic, partition }: Named,
  { settings, fork }: Plan,
): Promise<boolean> {
  const { gateway } = services;
  const known = gateway.findStream(topic);
  if (known?.isDeleted === true) {
    throw conflict("Stream is gone", `Cannot create stream ${topic}: its forks still need it`);
  }
  if (known !== null) return false;
  if (partition !== null) {
    throw notFound(`Cannot find topic ${topic}: a PUT without a partition makes one`);
  }
  const configs = [...configsOf(settings), ...(fork === null ? [] : configsOfFork(fork))];
  const created = await gateway.createStream(topic, configs);
  if (created.ok && fork !== null) await checkSource(services, topic, fork);
  if (created.ok) return true;
  if (created.error === "TOPIC_ALREADY_EXISTS") return false;
  throw new ProblemError(problemOf(created));
}

function otherSettings({ stream }: Found): ProblemError {
  return conflict(
    "Stream exists",
    `Cannot create stream ${stream.name}: it exists with other settings`,
  );
}

/**
 * What belongs into a stream from its beginning goes into one that is empty, whoever made it: a creation that was
 * cut off between the two is finished by its repeat.
 */
async function fill(
  services: StreamsServices,
  place: Found,
  { settings: { closes }, fork }: Plan,
  body: readonly Uint8Array[],
): Promise<StreamTail> {
  const tail = await tailOf(services, place);
  const values = [...fork?.prefix ?? [], ...body];
  const isEmpty = tail.next === (place.stream.fork?.start ?? 0) && tail.closedAt === null;
  if (!isEmpty && closes !== (tail.closedAt !== null)) throw otherSettings(place);
  if (!isEmpty || (values.length === 0 && !closes)) return tail;
  const ask = { values, closes, order: null, writer: null, isFirst: true };
  expectStepped(await services.gateway.step(place, ask), place);
  return await tailOf(services, place);
}

function locationOf(request: Request): string {
  const { origin, pathname } = new URL(request.url);
  return `${origin}${pathname}`;
}

export async function create(
  services: StreamsServices,
  request: Request,
  named: Named,
): Promise<Response> {
  const plan = await planOf(services, request);
  const { settings } = plan;
  const held = await HeldRequest.read(services, request);
  try {
    const values = valuesOf(held.body.bytes, kindOf(settings.contentType));
    const isNew = await ensure(services, named, plan);
    const place = findPlace(services.gateway, named);
    if (!isSame(place.stream, settings) || !isSameFork(place.stream, plan.fork)) {
      throw otherSettings(place);
    }
    const { next, closedAt } = await fill(services, place, plan, values);
    return new Response(null, {
      status: isNew ? 201 : 200,
      headers: {
        "content-type": place.stream.contentType,
        ...positionHeaders({ topicId: place.topicId, next, isClosed: closedAt !== null }),
        ...termsHeaders(place.stream),
        ...(isNew ? { location: locationOf(request) } : {}),
      },
    });
  } finally {
    held.release();
  }
}

/** Is no use of the stream: its time to live goes on. */
export async function describe(services: StreamsServices, named: Named): Promise<Response> {
  const place = findPlace(services.gateway, named);
  const { next, closedAt } = await tailOf(services, place);
  return new Response(null, {
    headers: {
      "content-type": place.stream.contentType,
      "cache-control": "no-store",
      ...positionHeaders({ topicId: place.topicId, next, isClosed: closedAt !== null }),
      ...termsHeaders(place.stream),
    },
  });
}

export async function remove({ gateway }: StreamsServices, named: Named): Promise<Response> {
  const { stream } = findPlace(gateway, named);
  if (stream.partitions > 1) {
    throw conflict("Not a stream of its own", `Cannot delete a partition of ${stream.name}`);
  }
  const deleted = await gateway.removeStream(stream.topicId);
  if (!deleted.ok) throw new ProblemError(problemOf(deleted));
  return new Response(null, { status: 204 });
}
