/** Maps what the S3 client throws to faults. All are retriable: rights, clocks and buckets get repaired. */
import type { FaultCode } from "../lib/errors.ts";
import { FaultError, messageOf } from "../lib/errors.ts";

export interface S3ErrorInfo {
  /** The S3 error code, such as `NoSuchKey`; for network errors the error's name. */
  readonly name: string;
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
}

export function s3ErrorInfo(error: unknown): S3ErrorInfo {
  if (!(error instanceof Error)) return { name: "", status: 0 };
  const metadata: unknown = "$metadata" in error ? error.$metadata : undefined;
  const status: unknown = typeof metadata === "object" && metadata !== null &&
      "httpStatusCode" in metadata
    ? metadata.httpStatusCode
    : 0;
  return { name: error.name, status: typeof status === "number" ? status : 0 };
}

/** What to tell the operator about errors whose own text does not help. */
const HINTS: Readonly<Record<string, string>> = {
  NoSuchBucket: "the bucket does not exist",
  RequestTimeTooSkewed: "this machine's clock differs too much from the store's; set the clock",
  InvalidAccessKeyId: "the access key is not known to the store",
  SignatureDoesNotMatch: "the secret key is wrong, or the region or endpoint is",
  AccessDenied: "access denied: the credentials lack a permission",
  ExpiredToken: "the session token has expired",
  PermanentRedirect: "the bucket is in another region",
  AuthorizationHeaderMalformed: "the region is wrong for this bucket",
  NotImplemented: "the store does not implement this request",
};

const DENIED: ReadonlySet<string> = new Set([
  "NoSuchBucket",
  "PermanentRedirect",
  "AuthorizationHeaderMalformed",
  "NotImplemented",
  "MethodNotAllowed",
  "InvalidBucketName",
  "ExpiredToken",
  "InvalidToken",
]);

/** "Slow down", as S3 says it and as proxies do. */
const THROTTLES: ReadonlySet<number> = new Set([429, 503]);

/** Names of several stores for the same: Ceph, MinIO, and those that follow them. */
const FULL: ReadonlySet<string> = new Set([
  "QuotaExceeded",
  "XMinioAdminBucketQuotaExceeded",
  "XMinioStorageFull",
  "InsufficientStorage",
]);

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const REDIRECTED =
  "it answers with a redirect: the endpoint or the region is wrong, or it is not the store that answers";

function codeOf({ name, status }: S3ErrorInfo): FaultCode {
  // Before the status: a quota that is used up is a 403 with some stores, and no question of rights.
  if (FULL.has(name) || status === 507) return "store-full";
  if (DENIED.has(name) || status === 401 || status === 403) return "store-denied";
  return "store-unavailable";
}

/** `what` is the action with its key, such as "put a/b". Faults stay what they are. */
export function s3Fault(error: unknown, what: string): FaultError {
  if (error instanceof FaultError) return error;
  const info = s3ErrorInfo(error);
  const redirected = REDIRECTS.has(info.status) ? REDIRECTED : undefined;
  const text = HINTS[info.name] ?? redirected ?? (messageOf(error) || info.name);
  const status = info.status === 0 ? "" : ` (${info.status} ${info.name})`;
  return new FaultError(codeOf(info), `Cannot ${what}: ${text}${status}`, {
    retriable: true,
    isThrottled: THROTTLES.has(info.status),
    cause: error,
  });
}
