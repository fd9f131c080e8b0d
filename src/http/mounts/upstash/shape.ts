/** Answers of Upstash's Kafka REST API: always JSON, also where there is nothing to say. */
import type { Problem } from "../../problem.ts";

export function upstashError({ status, detail, headers }: Problem): Response {
  return Response.json({ result: "Error", error: detail, status }, {
    status,
    ...(headers === undefined ? {} : { headers }),
  });
}

export function success(): Response {
  return Response.json({ result: "Success", status: 200 });
}
