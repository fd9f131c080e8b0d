/** Structured logging as an argument. An error is logged once, where it is handled. */

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Logger {
  /** `event` is a short kebab-case name; numbers carry their unit in the field name. */
  log(level: LogLevel, event: string, fields?: LogFields): void;
}

export const silentLogger: Logger = { log: () => {} };

export interface CapturedLine {
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

/** Keeps lines for assertions. */
export function capturingLogger(): Logger & { readonly lines: readonly CapturedLine[] } {
  const lines: CapturedLine[] = [];
  return { lines, log: (level, event, fields = {}) => void lines.push({ level, event, fields }) };
}
