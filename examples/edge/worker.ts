/** A Cloudflare Worker. `BROKER` is a variable of its settings: the URL of the broker's HTTP port. */
import { handle } from "./handler.ts";

const worker = {
  fetch: (request: Request, { BROKER }: { readonly BROKER: string }): Promise<Response> =>
    handle(request, BROKER),
};

// What Workers call.
// oxlint-disable-next-line import/no-default-export
export default worker;
