/**
 * The document for people: one page without anything from elsewhere. Its script is text here because the core
 * knows no DOM; it puts the document's words into the page as text only, never as markup.
 */
import { toUtf8 } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/sha256.ts";
import { toBase64 } from "../../lib/base64.ts";

const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { margin-bottom: 0; }
h2 { margin-top: 2.5rem; text-transform: capitalize; }
details { border-top: 1px solid var(--line); padding: .3rem 0; }
summary { cursor: pointer; }
summary > span { margin-left: .6rem; opacity: .8; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line); border-radius: 4px; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid var(--line); padding: .2rem .8rem .2rem 0; vertical-align: top; }
.method { display: inline-block; width: 4.5rem; font-weight: 600; }
#filter { width: 100%; font: inherit; padding: .4rem; box-sizing: border-box; }
`;

const SCRIPT = `
"use strict";
const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};
const code = (text) => element("code", text);
const nameOf = (ref) => ref.split("/").at(-1);
const typeOf = (schema) => {
  if (!schema) return "bytes";
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.enum) return schema.enum.join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  const either = schema.anyOf;
  if (either) return [...new Set(either.map(typeOf))].join(" | ");
  if (schema.type === "array") return "list of " + typeOf(schema.items);
  return [schema.type ?? "any"].flat().join(" | ");
};
const boundsOf = (schema) => [
  schema.minimum === undefined ? "" : "from " + schema.minimum,
  schema.maximum === undefined ? "" : "to " + schema.maximum,
  schema.default === undefined ? "" : "default " + JSON.stringify(schema.default),
].filter(Boolean).join(", ");
const rows = (items) => element("table", "", ...items.map((cells) =>
  element("tr", "", ...cells.map((cell) => element("td", "", cell)))
));
const parameters = (list) => list.length === 0 ? [] : [
  element("h4", "Parameters"),
  rows(list.map(({ name, in: where, required, description, schema }) => [
    code(name + (required ? "" : "?")),
    where,
    typeOf(schema),
    [description, boundsOf(schema)].filter(Boolean).join("; "),
  ])),
];
const contents = (content) => Object.entries(content ?? {}).flatMap(([type, { schema }]) => [
  element("p", "", code(type), schema ? "" : " (bytes)"),
  ...(schema ? [element("pre", JSON.stringify(schema, null, 2))] : []),
]);
const response = (status, { description, content, headers }) => element("details", "",
  element("summary", "", code(status), " " + description),
  ...(headers
    ? [rows(Object.entries(headers).map(([name, one]) => [code(name), one.description]))]
    : []),
  ...contents(content));
const responses = (all, shared) => [
  element("h4", "Answers"),
  ...Object.entries(all).map(([status, one]) =>
    response(status, one.$ref ? shared[nameOf(one.$ref)] : one)),
];
const operation = (path, method, one, shared) => {
  const made = element("details", "",
    element("summary", "",
      element("code", method.toUpperCase()), " ", code(path), element("span", one.summary)),
    ...(one.description ? [element("p", one.description)] : []),
    ...parameters(one.parameters ?? []),
    ...(one.requestBody ? [element("h4", "Body"), ...contents(one.requestBody.content)] : []),
    ...responses(one.responses, shared));
  made.id = one.operationId;
  made.dataset.words = [method, path, one.operationId, one.summary].join(" ").toLowerCase();
  made.querySelector("code").className = "method";
  return made;
};
const show = (api) => {
  const main = document.querySelector("main");
  main.replaceChildren();
  document.title = api.info.title;
  document.querySelector("h1").textContent = api.info.title + " " + api.info.version;
  document.querySelector("#about").textContent = api.info.description;
  for (const tag of api.tags) {
    const section = element("section", "",
      element("h2", tag.name), element("p", tag.description));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, one] of Object.entries(methods)) {
        if (one.tags.includes(tag.name)) section.append(operation(path, method, one, api.components.responses));
      }
    }
    main.append(section);
  }
  const schemas = element("section", "", element("h2", "schemas"));
  for (const [name, schema] of Object.entries(api.components.schemas)) {
    const made = element("details", "",
      element("summary", "", code(name)),
      element("pre", JSON.stringify(schema, null, 2)));
    made.dataset.words = name.toLowerCase();
    schemas.append(made);
  }
  main.append(schemas);
  document.querySelector(location.hash || "#none")?.setAttribute("open", "");
};
document.querySelector("#filter").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(" ").filter(Boolean);
  for (const one of document.querySelectorAll("details[data-words]")) {
    one.hidden = !words.every((word) => one.dataset.words.includes(word));
  }
});
fetch("openapi.json").then((answer) => {
  if (!answer.ok) throw new Error("status " + answer.status);
  return answer.json();
}).then(show).catch((error) => {
  document.querySelector("main").textContent = "Cannot show the document: " + error.message;
});
`;

export const DOCS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Skerry</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<h1>Skerry HTTP gateway</h1>
<p id="about"></p>
<p><a href="openapi.json">openapi.json</a></p>
<input id="filter" type="search" placeholder="Filter" aria-label="Filter">
<main>Reading the document</main>
<script>${SCRIPT}</script>
</body>
</html>
`;

function hashOf(text: string): string {
  return `'sha256-${toBase64(sha256(toUtf8(text)))}'`;
}

/** Nothing but the page's own script and style, and the document that it reads. */
export const DOCS_POLICY = [
  "default-src 'none'",
  `script-src ${hashOf(SCRIPT)}`,
  `style-src ${hashOf(STYLE)}`,
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
