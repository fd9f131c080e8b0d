/** `skerry inspect KEY|FILE`: any object of ours in readable lines, or as one JSON document. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { fileFault } from "../adapters/dir_store_fault.ts";
import type { Env } from "../env/env.ts";
import { type ByteSource, storeSource } from "../inspect/byte_source.ts";
import { inspect } from "../inspect/inspect.ts";
import { itemJson, itemLine } from "../inspect/item.ts";
import { kindOf, type ObjectKind } from "../inspect/kind.ts";
import { isKey } from "../object/object_key.ts";
import { type Arguments, optionsGiven } from "./args.ts";
import { EXIT } from "./exit.ts";
import { printer } from "./printer.ts";
import { readFileRange } from "./read_only_dir.ts";
import { configFault, isSet, openToolStore, runTool, toolEnv } from "./tool_store.ts";

async function fileSource(name: string): Promise<ByteSource | null> {
  const path = resolve(name);
  const found = await stat(path).catch(() => null);
  if (found?.isFile() !== true) return null;
  return {
    name: path.replaceAll("\\", "/"),
    size: found.size,
    async read(start, end) {
      try {
        return await readFileRange(path, start, end);
      } catch (error) {
        throw fileFault(error, `read ${path}`);
      }
    },
  };
}

async function keySource(args: Arguments, env: Env, key: string): Promise<ByteSource> {
  if (!isKey(key)) throw configFault(`Cannot inspect ${key}: neither a file nor a key`);
  const store = await openToolStore(args, env, "read");
  const info = await store.head(key);
  if (info === null) throw configFault(`Cannot inspect ${key}: no such file, and no such key`);
  return storeSource(store, info);
}

/** With --store the word is a key; without, a file if there is one. */
async function sourceOf(args: Arguments, env: Env): Promise<ByteSource> {
  const [name] = args.operands;
  if (name === undefined) throw configFault("Cannot inspect: name a KEY or a FILE");
  const file = "store" in args.flags ? null : await fileSource(name);
  if (file === null) return await keySource(args, env, name);
  const unused = optionsGiven(args).find((option) => option !== "json");
  if (unused === undefined) return file;
  throw configFault(
    `Cannot use --${unused}: ${name} is a file and needs no store; with --store it is a key`,
  );
}

async function printText(source: ByteSource, kind: ObjectKind, env: Env): Promise<string | null> {
  const print = printer();
  await print.line(`${kind} ${source.name} (${source.size} bytes)`);
  const items = inspect(source, kind, env.codecs);
  for (;;) {
    const next = await items.next();
    if (next.done === true) {
      if (next.value !== null) await print.line(`DAMAGED: ${next.value}`);
      await print.end();
      return next.value;
    }
    await print.line(itemLine(next.value));
  }
}

/** Written as it is decoded: a large object never stands in memory as a whole. */
async function printJson(source: ByteSource, kind: ObjectKind, env: Env): Promise<string | null> {
  const print = printer();
  const { name, size } = source;
  const head = JSON.stringify({ kind, name, size });
  await print.text(`${head.slice(0, -1)},"items":[`);
  const items = inspect(source, kind, env.codecs);
  for (let before = "\n";; before = ",\n") {
    const next = await items.next();
    if (next.done === true) {
      await print.text(`\n],"damage":${JSON.stringify(next.value)}}\n`);
      await print.end();
      return next.value;
    }
    await print.text(before + itemJson(next.value));
  }
}

export function inspectCommand(args: Arguments): Promise<number> {
  return runTool(async () => {
    const env = toolEnv();
    const source = await sourceOf(args, env);
    const kind = await kindOf(source);
    if (kind === null) throw configFault(`Cannot inspect ${source.name}: not an object of Skerry`);
    const print = isSet(args, "json") ? printJson : printText;
    return await print(source, kind, env) === null ? EXIT.ok : EXIT.data;
  });
}
