/**
 * Bodies of the dialects. Some of their routes are asked with GET and a body, which the servers of most runtimes
 * do not hand over: such a request may have it in `?body=`, and is told so.
 */
import { toUtf8 } from "../../lib/bytes.ts";
import { badRequest, ProblemError } from "../problem.ts";
import { parameter, queryOf } from "../query.ts";
import { type BodyRooms, type HeldBody, readBody } from "../read_body.ts";

function isRead({ method }: Request): boolean {
  return method === "GET" || method === "HEAD";
}

/** Throws ProblemError; then nothing is held. */
export async function bodyOf(
  request: Request,
  rooms: BodyRooms,
  bytesMax?: number,
): Promise<HeldBody> {
  const inQuery = isRead(request) ? parameter(queryOf(request), "body") : null;
  if (inQuery !== null) return { bytes: toUtf8(inQuery), release: () => {} };
  try {
    return await readBody(request, rooms, bytesMax);
  } catch (error) {
    if (!isRead(request) || !(error instanceof ProblemError)) throw error;
    throw badRequest("Cannot read the body of a GET here: send it with POST, or in ?body=");
  }
}
