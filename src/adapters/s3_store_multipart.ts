/**
 * Multipart upload: parts go out one after the other and are repeated by themselves, because their
 * source cannot be read twice. What fails is aborted, so that no invisible bytes are billed.
 */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { sleep } from "../env/clock.ts";
import { isFault } from "../lib/errors.ts";
import { STORE_ATTEMPTS_MAX } from "../lib/limits.ts";
import { backoffMs } from "../object/backoff.ts";
import { expectEtag } from "./s3_store_answer.ts";
import type { S3Requests } from "./s3_store_client.ts";
import { s3ErrorInfo } from "./s3_store_fault.ts";

interface Upload {
  readonly Bucket: string;
  readonly Key: string;
  readonly UploadId: string;
}

/**
 * A completion may lose its answer, and a second one is then told `NoSuchUpload`: `isThere` looks
 * whether an object of that size exists.
 */
export async function uploadParts(
  requests: S3Requests,
  key: string,
  parts: AsyncIterable<Uint8Array>,
  isThere: (size: number) => Promise<boolean>,
): Promise<void> {
  const upload = await begin(requests, key);
  try {
    const done: { PartNumber: number; ETag: string }[] = [];
    let size = 0;
    for await (const part of parts) {
      const number = done.length + 1;
      done.push({
        PartNumber: number,
        ETag: await repeat(requests, () => send(requests, upload, number, part)),
      });
      size += part.length;
    }
    await repeat(requests, () => complete(requests, upload, done)).catch(async (error: unknown) => {
      if (!isFault(error, "store-unavailable") || !(await isThere(size))) throw error;
    });
  } catch (error) {
    await abort(requests, upload);
    throw error;
  }
}

async function begin(requests: S3Requests, key: string): Promise<Upload> {
  const command = new CreateMultipartUploadCommand({ Bucket: requests.bucket, Key: key });
  return await requests.run(`begin the upload of ${key}`, 0, undefined, async ({ signal }) => {
    const { UploadId } = await requests.client.send(command, { abortSignal: signal });
    if (UploadId === undefined) throw new Error("the answer has no upload id");
    return { Bucket: requests.bucket, Key: key, UploadId };
  });
}

function send(
  requests: S3Requests,
  upload: Upload,
  number: number,
  body: Uint8Array,
): Promise<string> {
  const command = new UploadPartCommand({ ...upload, PartNumber: number, Body: body });
  return requests.run(
    `put part ${number} of ${upload.Key}`,
    body.length,
    undefined,
    async ({ signal }) => {
      const { ETag } = await requests.client.send(command, { abortSignal: signal });
      if (ETag === undefined) throw new Error("the answer has no ETag");
      return ETag;
    },
  );
}

async function complete(
  requests: S3Requests,
  upload: Upload,
  parts: { PartNumber: number; ETag: string }[],
): Promise<void> {
  const command = new CompleteMultipartUploadCommand({
    ...upload,
    MultipartUpload: { Parts: parts },
  });
  await requests.run(
    `complete the upload of ${upload.Key}`,
    0,
    undefined,
    async ({ signal }) => {
      expectEtag(await requests.client.send(command, { abortSignal: signal }));
    },
  );
}

/** Best effort: the bucket's lifecycle rule for unfinished uploads catches what is missed. */
async function abort(requests: S3Requests, upload: Upload): Promise<void> {
  const command = new AbortMultipartUploadCommand({ ...upload });
  await requests.run(
    `abort the upload of ${upload.Key}`,
    0,
    undefined,
    ({ signal }) => requests.client.send(command, { abortSignal: signal }),
  ).catch(() => undefined);
}

/** Somebody aborted the upload, or it was completed without an answer: no repetition brings it back. */
function isUploadGone(error: unknown): boolean {
  return error instanceof Error && s3ErrorInfo(error.cause).name === "NoSuchUpload";
}

/** What can be asked a second time, when the store was away. */
export async function repeat<T>({ clock }: S3Requests, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1;; attempt++) {
    try {
      return await work();
    } catch (error) {
      const canRetry = isFault(error, "store-unavailable") && !isUploadGone(error) &&
        attempt < STORE_ATTEMPTS_MAX;
      if (!canRetry) throw error;
      await sleep(clock, backoffMs(attempt, { float: Math.random }));
    }
  }
}
