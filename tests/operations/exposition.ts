/**
 * A strict reader of the Prometheus text format 0.0.4: it refuses what a scraper may pass over, such as a family
 * in two pieces, a series twice, HELP behind samples, wrong escapes or buckets that fall.
 */
import assert from "node:assert/strict";

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const VALUE = /^(?:[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|Inf)|NaN)$/;

function unescape(text: string, line: string): string {
  return text.replace(/\\([\s\S]?)/g, (_, next: string) => {
    assert.ok(["\\", '"', "n"].includes(next), `unknown escape: ${line}`);
    return next === "n" ? "\n" : next;
  });
}

function labelsIn(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {};
  let rest = text;
  while (rest !== "") {
    const [all, name, value] = /^([^=,{}"]+)="((?:[^"\\\n]|\\.)*)"(?:,|$)/.exec(rest) ?? [];
    assert.ok(
      all !== undefined && name !== undefined && value !== undefined,
      `bad labels: ${line}`,
    );
    assert.match(name, LABEL, line);
    assert.ok(!(name in labels), `label twice: ${line}`);
    labels[name] = unescape(value, line);
    rest = rest.slice(all.length);
  }
  return labels;
}

function sampleIn(line: string): Sample {
  const open = line.indexOf("{");
  const close = line.lastIndexOf("}");
  const name = open < 0 ? line.split(" ")[0]! : line.slice(0, open);
  const labels = open < 0 ? {} : labelsIn(line.slice(open + 1, close), line);
  const [value, ...more] = (open < 0 ? line.slice(name.length) : line.slice(close + 1)).trim()
    .split(" ");
  assert.match(name, NAME, line);
  assert.match(value ?? "", VALUE, line);
  assert.deepEqual(more, [], `no timestamps: ${line}`);
  return { name, labels, value: Number(value!.replace("Inf", "Infinity")) };
}

function keyOf({ name, labels }: Sample, without = ""): string {
  const sorted = Object.entries(labels).filter(([label]) => label !== without).toSorted();
  return JSON.stringify([name.replace(/_bucket$/, ""), ...sorted]);
}

function checkHistogram({ name, samples }: Family): void {
  const buckets = new Map<string, Sample[]>();
  const counts = new Map<string, number>();
  for (const sample of samples) {
    if (sample.name === `${name}_bucket`) {
      const key = keyOf(sample, "le");
      buckets.set(key, [...buckets.get(key) ?? [], sample]);
    } else if (sample.name === `${name}_count`) {
      counts.set(keyOf({ ...sample, name }), sample.value);
    } else assert.equal(sample.name, `${name}_sum`);
  }
  assert.equal(buckets.size, counts.size, name);
  for (const [key, row] of buckets) {
    const bounds = row.map(({ labels }) => Number(labels["le"]!.replace("+Inf", "Infinity")));
    const values = row.map(({ value }) => value);
    assert.deepEqual(bounds, bounds.toSorted((a, b) => a - b), name);
    assert.deepEqual(values, values.toSorted((a, b) => a - b), `${name}: buckets fall`);
    assert.equal(bounds.at(-1), Infinity, name);
    assert.equal(values.at(-1), counts.get(key), name);
  }
}

function check(family: Family): void {
  const { name, type, samples } = family;
  assert.ok(samples.length > 0, `${name} has no samples`);
  assert.equal(
    new Set(samples.map((one) => `${one.name}${keyOf(one)}`)).size,
    samples.length,
    name,
  );
  if (type === "histogram") return checkHistogram(family);
  for (const sample of samples) assert.equal(sample.name, name);
  if (type !== "counter") return;
  assert.match(name, /_total$/);
  for (const { value } of samples) assert.ok(value >= 0, name);
}

/** Throws AssertionError, with the line. */
export function readExposition(text: string): ReadonlyMap<string, Family> {
  assert.ok(text.endsWith("\n"), "the last line does not end");
  const families = new Map<string, Family>();
  let help = { name: "", text: "" };
  let samples: Sample[] = [];
  let current = "";
  for (const line of text.slice(0, -1).split("\n")) {
    const [, word, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (word === "HELP") {
      help = { name, text: rest.replace(/\\([\\n])/g, (_, next) => next === "n" ? "\n" : "\\") };
    } else if (word === "TYPE") {
      assert.equal(help.name, name, `TYPE without HELP: ${line}`);
      assert.ok(["counter", "gauge", "histogram"].includes(rest), line);
      assert.ok(!families.has(name), `a family in two pieces: ${line}`);
      samples = [];
      current = name;
      families.set(name, { name, type: rest, help: help.text, samples });
    } else {
      assert.ok(current !== "" && line.startsWith(current), `not of the family: ${line}`);
      samples.push(sampleIn(line));
    }
  }
  for (const one of families.values()) check(one);
  return families;
}
