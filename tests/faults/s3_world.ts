/** Brokers on our own S3 server, in this process and as processes, and what their HTTP clients do. */
import assert from "node:assert/strict";
import { type Broker, createBroker } from "../../mod.ts";
import type { S3Server } from "../support/s3_server.ts";

export function onS3(
  server: S3Server,
  prefix: string,
): { args: string[]; env: Record<string, string> } {
  const store = ["--store", `s3://${server.bucket}/${prefix}`, "--s3-endpoint", server.url];
  return {
    args: [...store, "--s3-path-style"],
    env: { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test-secret" },
  };
}

export function brokerOnS3(server: S3Server, prefix: string): Promise<Broker> {
  return createBroker({
    store: `s3://${server.bucket}/${prefix}`,
    s3Endpoint: server.url,
    s3PathStyle: true,
    credentials: { accessKeyId: "test", secretAccessKey: "test-secret" },
  });
}

export const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

export interface Posted {
  readonly status: number;
  readonly retriable: boolean;
  readonly offset: number;
}

/** `url` is the broker's; a broken connection counts as status 0. */
export async function post(url: string, topic: string, value: string): Promise<Posted> {
  const to = `${url}/v1/topics/${topic}/records`;
  const response = await fetch(to, { method: "POST", body: value }).catch(() => null);
  if (response === null) return { status: 0, retriable: true, offset: -1 };
  const body = await response.json() as {
    results?: { offset: number }[];
    kafka?: { retriable: boolean };
  };
  const { status } = response;
  const retriable = body.kafka?.retriable ?? false;
  if (status !== 200) {
    assert.ok(!retriable || Number(response.headers.get("retry-after")) > 0, "no Retry-After");
  }
  return { status, retriable, offset: body.results?.[0]?.offset ?? -1 };
}

export async function valuesOf(url: string, topic: string): Promise<string[]> {
  const from = `${url}/v1/topics/${topic}/partitions/0/records?limit=10000`;
  const response = await fetch(from);
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as { records: { value: string }[] }).records
    .map(({ value }) => value);
}
