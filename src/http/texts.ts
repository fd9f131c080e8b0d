/** Small texts that the gateway keeps in the metadata: each changed as a whole, known to all nodes. */

export interface MetadataTexts {
  get(key: string): string | null;
  /** In no order. */
  keys(prefix: string): readonly string[];
  /**
   * Puts what `change` makes of the present text; null is none. It is called again when somebody else was faster.
   * Throws ProblemError when it cannot be stored now.
   */
  change(key: string, change: (text: string | null) => string | null): Promise<void>;
  /** Calls when a text may have changed, or who leads what; returns the unsubscribe. */
  onChange(listener: () => void): () => void;
}
