/** Copies blocks into new objects, step by step: the memory of one step and of the open parts. */
import { assert } from "../../lib/assert.ts";
import type { ObjectId } from "../../lib/brand.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { dataKey } from "../../object/object_key.ts";
import { NORMAL_OBJECT } from "../format/attributes.ts";
import type { NewStreamObject, NewStreamSetObject } from "../ports.ts";
import { throwIfStopped } from "../upload/retry.ts";
import type { WrittenIndex } from "../written_index.ts";
import { type BlockLayout, layOutBlocks } from "./blocks.ts";
import { ObjectSink, type SinkOptions } from "./object_sink.ts";
import type { SourceReader } from "./source_reader.ts";
import { type Output, type Piece, piecesOf, stepsOf } from "./steps.ts";

export interface RewriteParts extends SinkOptions {
  readonly clusterId: string;
  readonly reader: SourceReader;
  readonly memoryBytes: number;
  /** Dead bytes that are read with the blocks around them. */
  readonly holeBytesMax: number;
}

export interface Rewritten {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
  readonly indexes: readonly WrittenIndex[];
}

/** An output while it is written. */
interface Open {
  readonly layout: BlockLayout;
  readonly sink: ObjectSink;
  left: number;
}

/** `ids` are those of the outputs, in their order. All objects are in the store when it resolves. */
export async function rewrite(
  parts: RewriteParts,
  outputs: readonly Output[],
  ids: readonly ObjectId[],
): Promise<Rewritten> {
  const open = new Map<number, Open>();
  const done = new Map<number, { layout: BlockLayout; bytesCrc: number }>();
  /** One object is finished while the next blocks are read. */
  let last: { readonly at: Open; readonly finished: Promise<void> } | null = null;
  try {
    for (const step of stepsOf(piecesOf(outputs), parts.memoryBytes, parts.holeBytesMax)) {
      throwIfStopped(parts.signal);
      const bytes = await parts.reader.blocks(step.map(({ block }) => block));
      for (const piece of step) {
        const at = open.get(piece.output) ?? begin(parts, outputs, ids, piece);
        open.set(piece.output, at);
        await at.sink.write(bytes.get(piece.block)!);
        at.left -= 1;
        if (at.left > 0) continue;
        await last?.finished;
        open.delete(piece.output);
        const finished = finish(at).then((bytesCrc) => {
          done.set(piece.output, { layout: at.layout, bytesCrc });
        });
        // Whoever waits for it next hears of a failure.
        finished.catch(() => {});
        last = { at, finished };
      }
    }
    await last?.finished;
  } catch (error) {
    for (const { sink } of open.values()) sink.cancel(error);
    last?.at.sink.cancel(error);
    // What is under way may still become an object, which the caller deletes.
    await last?.finished.catch(() => {});
    throw error;
  }
  return describe(outputs, ids, done);
}

function begin(
  parts: RewriteParts,
  outputs: readonly Output[],
  ids: readonly ObjectId[],
  { output }: Piece,
): Open {
  const { blocks } = outputs[output]!;
  const layout = layOutBlocks(blocks);
  const key = dataKey(parts.clusterId, ids[output]!);
  return { layout, sink: new ObjectSink(parts, key, layout.size), left: blocks.length };
}

async function finish({ layout, sink }: Open): Promise<number> {
  for (const bytes of layout.tail) await sink.write(bytes);
  return await sink.finish();
}

function describe(
  outputs: readonly Output[],
  ids: readonly ObjectId[],
  done: ReadonlyMap<number, { layout: BlockLayout; bytesCrc: number }>,
): Rewritten {
  let streamSetObject: NewStreamSetObject | null = null;
  const streamObjects: NewStreamObject[] = [];
  const indexes: WrittenIndex[] = [];
  for (const [i, { kind }] of outputs.entries()) {
    const { layout, bytesCrc } = done.get(i)!;
    const { size, ranges, index, indexBlock } = layout;
    indexes.push({ objectId: ids[i]!, index: indexBlock });
    const object = { objectId: ids[i]!, size, bytesCrc, indexCrc: crc32c(index) };
    if (kind === "stream-set") streamSetObject = { ...object, ranges };
    else {
      assert(ranges.length === 1, `Object ${ids[i]} would hold ${ranges.length} ranges`);
      streamObjects.push({ ...object, range: ranges[0]!, attributes: NORMAL_OBJECT });
    }
  }
  return { streamSetObject, streamObjects, indexes };
}
