/** The few XML bodies of the test S3 server. */

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function unescapeXml(text: string): string {
  const named: Readonly<Record<string, string>> = {
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    apos: "'",
  };
  return text.replace(/&(#x[0-9a-f]+|#\d+|\w+);/gi, (whole, name: string) => {
    if (!name.startsWith("#")) return named[name] ?? whole;
    const code = name[1] === "x" ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    return String.fromCodePoint(code);
  });
}

export function errorXml(code: string): string {
  return `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
}

export function initiateXml(key: string, id: string): string {
  return `<?xml version="1.0"?><InitiateMultipartUploadResult><Key>${escapeXml(key)}</Key>` +
    `<UploadId>${id}</UploadId></InitiateMultipartUploadResult>`;
}

export function completeXml(key: string, etag: string): string {
  return `<?xml version="1.0"?><CompleteMultipartUploadResult><Key>${escapeXml(key)}</Key>` +
    `<ETag>${escapeXml(etag)}</ETag></CompleteMultipartUploadResult>`;
}

interface Listed {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly modified: Date;
  readonly etag: string;
}

export function listXml(page: readonly Listed[], next: string | undefined): string {
  const contents = page.map(({ key, bytes, modified, etag }) =>
    `<Contents><Key>${escapeXml(key)}</Key><LastModified>${modified.toISOString()}</LastModified>` +
    `<ETag>${escapeXml(etag)}</ETag><Size>${bytes.length}</Size></Contents>`
  );
  const token = next === undefined
    ? ""
    : `<NextContinuationToken>${escapeXml(next)}</NextContinuationToken>`;
  return `<?xml version="1.0"?><ListBucketResult><KeyCount>${page.length}</KeyCount>` +
    `<IsTruncated>${next !== undefined}</IsTruncated>${token}${
      contents.join("")
    }</ListBucketResult>`;
}

export function batchDeleteXml(gone: readonly string[], failed: readonly string[]): string {
  const deleted = gone.map((key) => `<Deleted><Key>${escapeXml(key)}</Key></Deleted>`);
  const errors = failed.map((key) =>
    `<Error><Key>${
      escapeXml(key)
    }</Key><Code>InternalError</Code><Message>try again</Message></Error>`
  );
  return `<?xml version="1.0"?><DeleteResult>${deleted.join("")}${errors.join("")}</DeleteResult>`;
}

export function keysOfBatch(body: string): string[] {
  return [...body.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => unescapeXml(key ?? ""));
}
