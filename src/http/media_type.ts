/** The media type of a request's body, in lower case and without parameters. */
export function mediaType({ headers }: Request): string {
  return (headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
}
