/** Counters, gauges and histograms, rendered in the Prometheus text format. */
import { type MetricKind, METRICS } from "./metric_catalog.ts";

export type MetricsFormat = "prometheus" | "openmetrics";
export type Labels = Readonly<Record<string, string>>;

export interface Metrics {
  /** Adds to a counter; names end in `_total`. */
  count(name: string, labels?: Labels, by?: number): void;
  gauge(name: string, value: number, labels?: Labels): void;
  /** Records a duration or size into a histogram; names end in `_seconds` or `_bytes`. */
  observe(name: string, value: number, labels?: Labels): void;
  /**
   * For what is looked up only when somebody asks: `show` is called at each rendering, and the gauges that it
   * shows last for that one alone. Returns the removal.
   */
  onRender(show: (gauge: Metrics["gauge"]) => void): () => void;
  /** The exposition text of everything recorded so far; Prometheus' own where no format is named. */
  render(format?: MetricsFormat): string;
}

interface Series {
  readonly labels: Labels;
  value: number;
  count: number;
  buckets: number[];
}
interface Family {
  readonly kind: MetricKind;
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

/** As OpenMetrics wants numbers in labels: with a point, and from a million on with an exponent. */
function boundText(bound: number, format: MetricsFormat): string {
  if (format === "prometheus" || !Number.isInteger(bound)) return String(bound);
  return bound < 1e6 ? bound.toFixed(1) : bound.toExponential().replace("e+", "e+0");
}

function renderHistogram(
  name: string,
  family: Family,
  series: Series,
  format: MetricsFormat,
): string[] {
  const lines: string[] = [];
  let below = 0;
  for (const [i, bound] of family.bounds.entries()) {
    below += series.buckets[i] ?? 0;
    lines.push(
      `${name}_bucket${labelText({ ...series.labels, le: boundText(bound, format) })} ${below}`,
    );
  }
  lines.push(`${name}_bucket${labelText({ ...series.labels, le: "+Inf" })} ${series.count}`);
  lines.push(`${name}_sum${labelText(series.labels)} ${series.value}`);
  lines.push(`${name}_count${labelText(series.labels)} ${series.count}`);
  return lines;
}

/** Empty where nothing is known of the name. */
function helpLine(name: string, shownName: string, format: MetricsFormat): string[] {
  const help = METRICS[name]?.help;
  if (help === undefined) return [];
  const text = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return [`# HELP ${shownName} ${format === "openmetrics" ? text.replaceAll('"', '\\"') : text}`];
}

/** OpenMetrics names a counter without the end that its samples have. */
function familyName(name: string, { kind }: Family, format: MetricsFormat): string {
  return format === "openmetrics" && kind === "counter" ? name.replace(/_total$/, "") : name;
}

function renderFamilies(families: ReadonlyMap<string, Family>, format: MetricsFormat): string[] {
  const lines: string[] = [];
  for (const [name, family] of families) {
    const shownName = familyName(name, family, format);
    lines.push(...helpLine(name, shownName, format), `# TYPE ${shownName} ${family.kind}`);
    for (const found of family.series.values()) {
      if (family.kind === "histogram") lines.push(...renderHistogram(name, family, found, format));
      else lines.push(`${name}${labelText(found.labels)} ${found.value}`);
    }
  }
  return lines;
}

interface Located {
  readonly family: Family;
  readonly series: Series;
}

function locate(
  families: Map<string, Family>,
  name: string,
  kind: MetricKind,
  labels: Labels,
): Located {
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

export function createMetrics(): Metrics {
  const families = new Map<string, Family>();
  const shows = new Set<(gauge: Metrics["gauge"]) => void>();
  return {
    count(name, labels = {}, by = 1) {
      locate(families, name, "counter", labels).series.value += by;
    },
    gauge(name, value, labels = {}) {
      locate(families, name, "gauge", labels).series.value = value;
    },
    observe(name, value, labels = {}) {
      const { family, series } = locate(families, name, "histogram", labels);
      series.value += value;
      series.count += 1;
      const at = family.bounds.findIndex((bound) => value <= bound);
      if (at >= 0) series.buckets[at] = (series.buckets[at] ?? 0) + 1;
    },
    onRender(show) {
      shows.add(show);
      return () => void shows.delete(show);
    },
    render(format = "prometheus") {
      const shown = new Map<string, Family>();
      for (const show of shows) {
        show((name, value, labels = {}) => {
          locate(shown, name, "gauge", labels).series.value = value;
        });
      }
      const lines = [...renderFamilies(families, format), ...renderFamilies(shown, format)];
      if (format === "openmetrics") lines.push("# EOF");
      return `${lines.join("\n")}\n`;
    },
  };
}
