/**
 * What an answer must have before it is believed. Proxies, portals and load balancers answer in the store's place,
 * with any status: a page with 200 is no stored object, and a 404 of theirs says nothing about what is stored.
 */
import type { ByteRange } from "../object/object_store.ts";

/** Every answer of the protocol about one object has it. */
export function expectEtag({ ETag }: { readonly ETag?: string | undefined }): void {
  if (ETag === undefined || ETag === "") {
    throw new Error("the answer has no ETag, so it is not the store's");
  }
}

/** `name` is the code in the body; without one, anybody may have answered. */
export function expectAbsent({ status, name }: { readonly status: number; readonly name: string }) {
  if (status === 404 && name === "NoSuchKey") return;
  throw new Error(`status ${status} without a code of the store: somebody else has answered`);
}

/** A deletion is answered with 204 and nothing else; who says 200 has to sign. */
export function expectDeleted(
  { $metadata: { httpStatusCode, requestId } }: {
    readonly $metadata: {
      readonly httpStatusCode?: number | undefined;
      readonly requestId?: string | undefined;
    };
  },
): void {
  if (httpStatusCode === 204 || requestId !== undefined) return;
  throw new Error(`a deletion answered with status ${httpStatusCode} and no request id`);
}

/** The size of the whole object; the bytes have to be those that were asked for. */
export function sizeByRange(
  contentRange: string | undefined,
  { start, end }: ByteRange,
  length: number,
): number {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(contentRange ?? "");
  if (match === null) throw new Error("the store ignored the range of a read");
  const size = Number(match[2]);
  if (Number(match[1]) !== start || length !== Math.min(end, size) - start) {
    throw new Error(`asked for bytes ${start} to ${end}, got ${length} of ${contentRange}`);
  }
  return size;
}
