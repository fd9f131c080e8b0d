/** The S3 adapter where servers misbehave; the contract suite covers those that behave. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Clock } from "../env/clock.ts";
import { silentLogger } from "../env/logger.ts";
import { seededRandom } from "../env/random.ts";
import { isFault, messageOf } from "../lib/errors.ts";
import { STORE_ATTEMPTS_MAX, STORE_REQUEST_TIMEOUT_MS } from "../lib/limits.ts";
import { createExactly } from "../object/create.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { probeStore } from "../object/probe.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { startS3Server } from "../../tests/support/s3_server.ts";
import type { S3Call, S3Fault, S3Server } from "../../tests/support/s3_server.ts";
import { systemTestClock } from "../../tests/support/system_test_clock.ts";
import { openS3Store } from "./s3_store.ts";
import { listedAtMs, readAtMs } from "./s3_store_dates.ts";

const BODY = Uint8Array.of(1, 2, 3);
const credentials = { accessKeyId: "a", secretAccessKey: "b" };
let server: S3Server;
let store: ObjectStore;

function open(endpoint: string, bucket = "skerry-test", clock = systemTestClock): ObjectStore {
  return openS3Store({ bucket, endpoint, pathStyle: true, credentials, clock });
}

before(async () => {
  server = await startS3Server();
  store = open(server.url);
});
beforeEach(() => server.onCall(() => undefined));
after(async () => {
  await store.close();
  await server.close();
});

/** The fault meets the first call only. */
function once(fault: S3Fault): void {
  let met = false;
  server.onCall(() => {
    if (met) return undefined;
    met = true;
    return fault;
  });
}

test("a listing in any order comes page by page, and repeats a page that failed", async () => {
  const paged = await startS3Server({ pageKeys: 10 });
  const listing = open(paged.url);
  const keys = Array.from({ length: 45 }, (_, i) => `k/${String(i).padStart(2, "0")}`);
  for (const key of keys) await listing.put(key, BODY);
  const found: string[] = [];
  const requests: number[] = [];
  for await (const { key } of listing.list("k/", { anyOrder: true })) {
    found.push(key);
    if (found.length % 10 === 1) requests.push(paged.calls.list);
    if (found.length === 20) {
      let isFirst = true;
      paged.onCall(() => {
        if (!isFirst) return undefined;
        isFirst = false;
        return { refuse: { status: 503, code: "SlowDown" } };
      });
    }
  }
  assert.deepEqual(found, keys);
  assert.deepEqual(requests, [1, 2, 4, 5, 6], "one for each page, and one that was refused");
  for await (const _ of listing.list("k/", { anyOrder: true })) break;
  assert.equal(paged.calls.list, 7, "who stops asks for no more");
  await listing.close();
  await paged.close();
});

const listing = (inside: string) =>
  `<?xml version="1.0"?><ListBucketResult><KeyCount>1</KeyCount>${inside}</ListBucketResult>`;
const LISTED = "<Contents><Key>k/1</Key><Size>3</Size></Contents>";
const CUT = `<IsTruncated>true</IsTruncated>${LISTED}`;
const BROKEN_LISTINGS: ReadonlyMap<string, readonly [string, RegExp]> = new Map([
  ["cut short without a token", [listing(CUT), /cut short/]],
  ["cut short with an empty token", [
    listing(`${CUT}<NextContinuationToken></NextContinuationToken>`),
    /cut short/,
  ]],
  ["that goes on where it is", [
    listing(`${CUT}<NextContinuationToken>t</NextContinuationToken>`),
    /goes on where it is/,
  ]],
  ["that is a page of somebody else", ["<html><body>Welcome</body></html>", /no listing/]],
  ["with an object that has no key", [
    listing("<IsTruncated>false</IsTruncated><Contents><Size>3</Size></Contents>"),
    /without key/,
  ]],
]);

/** Repetitions follow at once; a request has its whole time. */
const WITHOUT_PAUSES: Clock = {
  ...systemTestClock,
  after: (delayMs, work) =>
    systemTestClock.after(delayMs < STORE_REQUEST_TIMEOUT_MS ? 0 : delayMs, work),
};

for (const [what, [answer, message]] of BROKEN_LISTINGS) {
  for (const anyOrder of [false, true]) {
    test(`a listing ${what} is a retriable fault, ${anyOrder ? "in any" : "in"} order`, async () => {
      let asked = 0;
      server.onCall(({ op }) => {
        if (op !== "list") return undefined;
        asked += 1;
        return { answer };
      });
      const broken = open(server.url, "skerry-test", WITHOUT_PAUSES);
      let found: unknown = null;
      await Array.fromAsync(broken.list("k/", { anyOrder }))
        .catch((error: unknown) => void (found = error));
      await broken.close();
      assert.ok(isFault(found, "store-unavailable") && found.retriable, String(found));
      assert.match(messageOf(found), message);
      assert.ok(asked <= 1 + STORE_ATTEMPTS_MAX, `${asked} requests`);
    });
  }
}

test("the age of what has no date is not known: it is never old", () => {
  assert.equal(listedAtMs({}), Infinity);
  assert.equal(listedAtMs({ LastModified: new Date(7) }), 7);
  assert.equal(readAtMs(undefined, 1_000), 1_000);
  assert.equal(readAtMs(new Date(7), 1_000), 7);
});

const create = (key: string) =>
  createExactly(store, key, BODY, {
    clock: systemTestClock,
    random: seededRandom(1),
    log: silentLogger,
  });

for (
  const [status, code, fault] of [
    [503, "SlowDown", "store-unavailable"],
    [500, "InternalError", "store-unavailable"],
    [429, "TooManyRequests", "store-unavailable"],
    [409, "ConditionalRequestConflict", "store-unavailable"],
    [403, "AccessDenied", "store-denied"],
    [403, "RequestTimeTooSkewed", "store-denied"],
    [401, "Unauthorized", "store-denied"],
    [404, "NoSuchBucket", "store-denied"],
    [400, "ExpiredToken", "store-denied"],
    [400, "InvalidToken", "store-denied"],
    [507, "InsufficientStorage", "store-full"],
    [403, "QuotaExceeded", "store-full"],
    [400, "XMinioStorageFull", "store-full"],
  ] as const
) {
  test(`${status} ${code} is ${fault}, and sent once`, async () => {
    server.onCall(() => ({ refuse: { status, code } }));
    const earlier = server.calls.put;
    await assert.rejects(
      store.put("refused", BODY, { ifAbsent: true }),
      (error) =>
        isFault(error, fault) && error.retriable && messageOf(error).includes("put refused") &&
        error.isThrottled === (status === 503 || status === 429),
    );
    assert.equal(server.calls.put, earlier + 1);
    await assert.rejects(store.get("refused"), (error) => isFault(error, fault));
  });
}

test("a skewed clock and a missing bucket say so", async () => {
  server.onCall(() => ({ refuse: { status: 403, code: "RequestTimeTooSkewed" } }));
  await assert.rejects(store.put("k", BODY), /set the clock/);
  server.onCall(() => undefined);
  const elsewhere = open(server.url, "no-such-bucket");
  await assert.rejects(elsewhere.put("k", BODY), /bucket does not exist/);
  await assert.rejects(elsewhere.get("k"), /bucket does not exist/);
});

test("412 and 304 mean that it exists", async () => {
  for (const [status, code] of [[412, "PreconditionFailed"], [304, "NotModified"]] as const) {
    server.onCall(() => ({ refuse: { status, code } }));
    assert.equal((await store.put("exists", BODY, { ifAbsent: true })).created, false);
  }
});

test("a lost answer, a dropped request, a 409 and a 503 still give one definite create", async () => {
  const faults: readonly S3Fault[] = [
    { loseAnswer: true },
    { dropRequest: true },
    { lateEffectMs: 20 },
    { repeatAfterMs: 5 },
    { refuse: { status: 409, code: "ConditionalRequestConflict" } },
    { refuse: { status: 503, code: "SlowDown" } },
  ];
  for (const [i, fault] of faults.entries()) {
    once(fault);
    assert.equal((await create(`definite/${i}`)).created, true, JSON.stringify(fault));
    assert.deepEqual(server.objects.get(`definite/${i}`)?.bytes, BODY);
  }
});

test("no server is store-unavailable", async () => {
  const gone = await startS3Server();
  await gone.close();
  const nowhere = open(gone.url);
  await assert.rejects(nowhere.put("k", BODY), (e) => isFault(e, "store-unavailable"));
  await assert.rejects(nowhere.head("k"), (e) => isFault(e, "store-unavailable"));
});

test("an answer that does not come in time is store-unavailable, an abort is aborted", async () => {
  server.onCall(() => ({ delayMs: 1_000 }));
  const clock = createFakeClock();
  const slow = open(server.url, "skerry-test", clock);
  const late = assert.rejects(
    slow.get("k"),
    (e) => isFault(e, "store-unavailable") && /in time/.test(messageOf(e)),
  );
  await clock.advance(31_000);
  await late;
  const stop = new AbortController();
  const aborted = assert.rejects(
    store.get("k", { signal: stop.signal }),
    (e) => isFault(e, "aborted"),
  );
  stop.abort();
  await aborted;
});

test("the store's clock comes from the Date header, also of a 412", async () => {
  const clock = createFakeClock(0);
  const dated = open(server.url, "skerry-test", clock);
  for (const created of [true, false]) {
    const answer = await dated.put("dated", BODY, { ifAbsent: true });
    assert.equal(answer.created, created);
    assert.ok(Math.abs(answer.storeNowMs - Date.now()) < 60_000);
  }
});

test("a batch delete reports the keys that stayed, and goes in bounded batches", async () => {
  const keys = Array.from({ length: 501 }, (_, i) => `batch/${i}`);
  server.onCall(() => ({ failKeys: ["batch/3", "batch/7"] }));
  const earlier = { ...server.calls };
  const { gone, failed } = await store.delete(keys);
  assert.deepEqual(failed, ["batch/3", "batch/7"]);
  assert.equal(gone.length, 499);
  assert.equal(server.calls["delete-batch"] - earlier["delete-batch"], 1);
  assert.equal(server.calls.delete - earlier.delete, 1, "a batch of one is a plain delete");
});

test("a store without batch deletes gets single ones, and is not asked again", async () => {
  const single = open(server.url);
  server.onCall(({ op }) =>
    op === "delete-batch" ? { refuse: { status: 501, code: "NotImplemented" } } : undefined
  );
  const earlier = { ...server.calls };
  for (let i = 0; i < 2; i++) {
    assert.deepEqual((await single.delete(["s/1", "s/2"])).gone, ["s/1", "s/2"]);
  }
  assert.equal(server.calls["delete-batch"] - earlier["delete-batch"], 1);
  assert.equal(server.calls.delete - earlier.delete, 4);
});

const PAGE = "<html><body><h1>Welcome</h1></body></html>";
const STRANGERS: ReadonlyMap<string, S3Fault> = new Map(([
  ["a page with 200", { reply: { status: 200, body: PAGE } }],
  ["an empty answer with 200", { reply: { status: 200 } }],
  ["a page with 206", { reply: { status: 206, body: PAGE } }],
  ["a plain 404", { reply: { status: 404, body: "404 page not found" } }],
  ["an empty 404", { reply: { status: 404 } }],
  ["a 404 of another kind", { refuse: { status: 404, code: "NoSuchService" } }],
] as const).map(([name, fault]) => [`${name} of somebody else`, fault] as const));

/** Each request, where the answer would be taken for the store's: as a success, or as a proof of absence. */
async function assertNoneBelieved(what: string): Promise<void> {
  const requests: Readonly<Record<string, () => Promise<unknown>>> = {
    put: () => store.put("p/k", BODY),
    create: () => store.put("p/k", BODY, { ifAbsent: true }),
    get: () => store.get("p/k"),
    "get a range": () => store.get("p/k", { range: { start: 0, end: 2 } }),
    "get nothing": () => store.get("p/k", { range: { start: 2, end: 2 } }),
    "get past the end": () => store.get("p/k", { range: { start: 20, end: 22 } }),
    head: () => store.head("p/k"),
    list: () => Array.fromAsync(store.list("p/")),
    delete: () => store.delete(["p/k"]),
  };
  for (const [name, ask] of Object.entries(requests)) {
    await assert.rejects(
      ask(),
      (error) => isFault(error, "store-unavailable") && error.retriable,
      `${what}: ${name}`,
    );
  }
  assert.deepEqual(
    await store.delete(["p/k", "p/l"]).then(({ gone }) => gone, () => []),
    [],
    `${what}: delete two`,
  );
}

for (const [what, fault] of STRANGERS) {
  test(`${what} is an outage: nothing stored, nothing gone, nothing absent`, async () => {
    server.onCall(() => fault);
    await assertNoneBelieved(what);
    server.onCall(() => undefined);
    await store.put("p/k", BODY);
    await store.put("p/l", BODY);
    const earlier = server.calls["delete-batch"];
    assert.deepEqual((await store.delete(["p/k", "p/l"])).failed, []);
    assert.equal(server.calls["delete-batch"], earlier + 1, "it is still asked for batches");
  });
}

for (const status of [301, 302, 303, 307, 308]) {
  test(`a redirect (${status}) is not followed: a page there is not the store`, async () => {
    const portal = await startS3Server({ bucket: "login" });
    let followed = 0;
    portal.onCall(() => {
      followed += 1;
      return { reply: { status: 200, body: PAGE, headers: { etag: '"1"' } } };
    });
    const location = `${portal.url}/login/page`;
    server.onCall(() => ({ reply: { status, headers: { location } } }));
    await assertNoneBelieved(`${status}`);
    await assert.rejects(store.put("k", BODY), /redirect: the endpoint or the region is wrong/);
    assert.equal(followed, 0);
    await portal.close();
  });
}

test("a range that is not the one asked for is refused", async () => {
  for (
    const [body, range] of [["abc", "bytes 0-2/10"], ["fghij", "bytes 5-9/10"], [
      "abcdef",
      "bytes 0-5/10",
    ]]
  ) {
    const headers = { "content-range": range!, etag: '"1"' };
    server.onCall(() => ({ reply: { status: 206, body: body!, headers } }));
    await assert.rejects(
      store.get("k", { range: { start: 0, end: 5 } }),
      (e) => isFault(e, "store-unavailable") && /asked for bytes 0 to 5/.test(messageOf(e)),
    );
  }
});

test("a batch delete that met passing trouble stays a batch delete", async () => {
  const fresh = open(server.url);
  for (const code of ["RequestTimeout", "ExpiredToken"]) {
    server.onCall(({ op }) =>
      op === "delete-batch" ? { refuse: { status: 400, code } } : undefined
    );
    await assert.rejects(fresh.delete(["d/1", "d/2"]), (e) => isFault(e) && e.retriable);
    server.onCall(() => undefined);
    const earlier = server.calls["delete-batch"];
    assert.deepEqual((await fresh.delete(["d/1", "d/2"])).gone.length, 2);
    assert.equal(server.calls["delete-batch"], earlier + 1);
  }
  await fresh.close();
});

async function* threeParts() {
  for (let i = 0; i < 3; i++) yield new Uint8Array(100).fill(i);
}

test("a part that fails is sent again; an upload that fails is aborted", async () => {
  let multipart = 0;
  server.onCall(({ op }) =>
    op === "multipart" && ++multipart === 3
      ? { refuse: { status: 503, code: "SlowDown" } }
      : undefined
  );
  await store.putParts("parts/retried", threeParts());
  assert.equal(server.objects.get("parts/retried")?.bytes.length, 300);
  server.onCall(({ op }) =>
    op === "multipart" && ++multipart === 9
      ? { refuse: { status: 403, code: "AccessDenied" } }
      : undefined
  );
  await assert.rejects(
    store.putParts("parts/denied", threeParts()),
    (e) => isFault(e, "store-denied"),
  );
  assert.equal(server.openUploads, 0);
});

test("AutoMQ 3418: parts of an upload that is gone are not sent again, the next upload is a new one", async () => {
  const gone = { refuse: { status: 404, code: "NoSuchUpload" } };
  let multipart = 0;
  server.onCall(({ op }) => op === "multipart" && ++multipart >= 3 ? gone : undefined);
  await assert.rejects(
    store.putParts("parts/gone", threeParts()),
    (error) => isFault(error, "store-unavailable") && error.retriable,
  );
  assert.equal(multipart, 4, "begin, the first part, the refused one, and the abort");
  server.onCall(() => undefined);
  await store.putParts("parts/gone", threeParts());
  assert.equal(server.objects.get("parts/gone")?.bytes.length, 300);
});

test("an upload whose completion got no answer is found complete", async () => {
  let multipart = 0;
  server.onCall(({ op }) =>
    op === "multipart" && ++multipart === 5 ? { loseAnswer: true } : undefined
  );
  await store.putParts("parts/lost", threeParts());
  assert.equal(server.objects.get("parts/lost")?.bytes.length, 300);
});

const isCompletion = ({ op, body }: S3Call) =>
  op === "multipart" && new TextDecoder().decode(body).includes("<CompleteMultipartUpload");
const COMPLETIONS: readonly (readonly [string, string])[] = [
  ["an error", "<Error><Code>InternalError</Code><Message>m</Message></Error>"],
  ["an error after blanks", "  \n\n<Error><Code>InternalError</Code><Message>m</Message></Error>"],
  ["nothing", ""],
  ["blanks", "    "],
  ["a page of somebody else", PAGE],
];

for (const [what, body] of COMPLETIONS) {
  test(`a completion with status 200 that holds ${what} is repeated, or the upload has failed`, async () => {
    const earlier = server.openUploads;
    let met = 0;
    server.onCall((call) =>
      isCompletion(call) && ++met === 1 ? { reply: { status: 200, body } } : undefined
    );
    await store.putParts("parts/again", threeParts());
    assert.equal(met, 2);
    assert.equal(server.objects.get("parts/again")?.bytes.length, 300);
    server.onCall((call) => isCompletion(call) ? { reply: { status: 200, body } } : undefined);
    const patient = open(server.url, "skerry-test", WITHOUT_PAUSES);
    await assert.rejects(
      patient.putParts("parts/never", threeParts()),
      (error) => isFault(error, "store-unavailable") && error.retriable,
    );
    await patient.close();
    assert.ok(!server.objects.has("parts/never"));
    assert.equal(server.openUploads, earlier);
  });
}

test("the source of parts is closed, wherever an upload fails", async () => {
  for (let failing = 1; failing <= 5; failing++) {
    let multipart = 0;
    server.onCall(({ op }) =>
      op === "multipart" && ++multipart === failing
        ? { refuse: { status: 403, code: "AccessDenied" } }
        : undefined
    );
    let isClosed = false;
    const source = async function* () {
      try {
        yield* threeParts();
      } finally {
        isClosed = true;
      }
    };
    await assert.rejects(store.putParts("parts/closed", source()));
    assert.ok(isClosed, `request ${failing}`);
  }
});

test("the probe refuses a server that ignores If-None-Match", async () => {
  const careless = await startS3Server({ ignoreConditions: true });
  const probed = open(careless.url);
  const env = { clock: systemTestClock, random: seededRandom(1), log: silentLogger };
  await assert.rejects(
    probeStore(probed, env),
    (e) => isFault(e, "config") && /If-None-Match/.test(messageOf(e)),
  );
  assert.equal(careless.objects.size, 0);
  await careless.close();
});

test("without credentials it does not open", () => {
  assert.throws(
    () => openS3Store({ bucket: "b", credentials: null, clock: systemTestClock }),
    (e) => isFault(e, "config"),
  );
});
