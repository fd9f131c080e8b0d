/** An app of its own for each dialect: what goes wrong is told in the shape that its clients know. */
import { Hono } from "hono";
import type { Env } from "../../env/env.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { busy } from "../permit_wait.ts";
import { type Problem, ProblemError } from "../problem.ts";
import { pathOf } from "../target.ts";

export type Shape = (problem: Problem) => Response;

const PATH_SHOWN_CHARS_MAX = 200;

function otherMethods(app: Hono, shape: Shape): void {
  const methods = new Map<string, Set<string>>();
  for (const { path, method } of app.routes) {
    if (method === "ALL") continue;
    const allowed = methods.get(path) ?? new Set();
    methods.set(path, allowed.add(method));
  }
  for (const [path, allowed] of methods) {
    const allow = [...allowed].join(", ");
    const detail = `Cannot use this method here: allowed are ${allow}`;
    app.all(
      path,
      () => shape({ status: 405, title: "Method not allowed", detail, headers: { allow } }),
    );
  }
}

/** `register` adds the routes; what they throw, and what is not there, gets the dialect's shape. */
export function dialectApp(
  env: Env,
  shape: Shape,
  register: (app: Hono) => void,
  translate: (error: unknown) => Problem | null = () => null,
): Hono {
  const app = new Hono({ getPath: pathOf });
  register(app);
  otherMethods(app, shape);
  app.all("*", (c) => {
    const path = c.req.path.slice(0, PATH_SHOWN_CHARS_MAX);
    return shape({
      status: 404,
      title: "Not found",
      detail: `Cannot find ${c.req.method} ${path}`,
    });
  });
  app.onError((error) => {
    const problem = translate(error);
    if (problem !== null) return shape(problem);
    if (error instanceof ProblemError) return shape(error.problem);
    if (isFault(error, "aborted")) return shape(busy().problem);
    env.log.log("error", "http-handler-failed", { error: messageOf(error) });
    return shape({
      status: 500,
      title: "Internal error",
      detail: "Cannot answer: the broker logged why",
    });
  });
  return app;
}
