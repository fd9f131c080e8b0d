/** Counters, gauges and histograms, rendered in the Prometheus text format. */

export type Labels = Readonly<Record<string, string>>;

export interface Metrics {
  /** Adds to a counter; names end in `_total`. */
  count(name: string, labels?: Labels, by?: number): void;
  gauge(name: string, value: number, labels?: Labels): void;
  /** Records a duration or size into a histogram; names end in `_seconds` or `_bytes`. */
  observe(name: string, value: number, labels?: Labels): void;
  /** The exposition text of everything recorded so far. */
  render(): string;
}

type Kind = "counter" | "gauge" | "histogram";
interface Series {
  readonly labels: Labels;
  value: number;
  count: number;
  buckets: number[];
}
interface Family {
  readonly kind: Kind;
  readonly bounds: readonly number[];
  readonly series: Map<string, Series>;
}

const SECONDS_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BYTES_BOUNDS = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

function labelText(labels: Labels): string {
  const names = Object.keys(labels);
  // Most series have no label or one, and this runs for every count.
  if (names.length === 0) return "";
  const parts = (names.length === 1 ? names : names.toSorted()).map((name) =>
    `${name}="${labels[name]!.replace(/[\\"\n]/g, (c) => c === "\n" ? "\\n" : `\\${c}`)}"`
  );
  return `{${parts.join(",")}}`;
}

function renderHistogram(name: string, family: Family, series: Series): string[] {
  const lines: string[] = [];
  let below = 0;
  for (const [i, bound] of family.bounds.entries()) {
    below += series.buckets[i] ?? 0;
    lines.push(`${name}_bucket${labelText({ ...series.labels, le: String(bound) })} ${below}`);
  }
  lines.push(`${name}_bucket${labelText({ ...series.labels, le: "+Inf" })} ${series.count}`);
  lines.push(`${name}_sum${labelText(series.labels)} ${series.value}`);
  lines.push(`${name}_count${labelText(series.labels)} ${series.count}`);
  return lines;
}

export function createMetrics(): Metrics {
  const families = new Map<string, Family>();

  function series(name: string, kind: Kind, labels: Labels): { family: Family; series: Series } {
    let family = families.get(name);
    if (family === undefined) {
      const bounds = name.endsWith("_bytes") ? BYTES_BOUNDS : SECONDS_BOUNDS;
      family = { kind, bounds, series: new Map() };
      families.set(name, family);
    }
    const key = labelText(labels);
    let found = family.series.get(key);
    if (found === undefined) {
      found = { labels, value: 0, count: 0, buckets: [] };
      family.series.set(key, found);
    }
    return { family, series: found };
  }

  return {
    count(name, labels = {}, by = 1) {
      series(name, "counter", labels).series.value += by;
    },
    gauge(name, value, labels = {}) {
      series(name, "gauge", labels).series.value = value;
    },
    observe(name, value, labels = {}) {
      const { family, series: found } = series(name, "histogram", labels);
      found.value += value;
      found.count += 1;
      const at = family.bounds.findIndex((bound) => value <= bound);
      if (at >= 0) found.buckets[at] = (found.buckets[at] ?? 0) + 1;
    },
    render() {
      const lines: string[] = [];
      for (const [name, family] of families) {
        lines.push(`# TYPE ${name} ${family.kind}`);
        for (const found of family.series.values()) {
          if (family.kind === "histogram") lines.push(...renderHistogram(name, family, found));
          else lines.push(`${name}${labelText(found.labels)} ${found.value}`);
        }
      }
      return `${lines.join("\n")}\n`;
    },
  };
}
