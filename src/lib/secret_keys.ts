/** Small texts of the metadata that hold secrets: tools show that they are there, and no more. */

export const WEBHOOK_KEY_PREFIX = "webhook/";
export const PUSH_KEYS_KEY = "push-keys";

export function isSecretKey(key: string): boolean {
  return key === PUSH_KEYS_KEY || key.startsWith(WEBHOOK_KEY_PREFIX);
}
