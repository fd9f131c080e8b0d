/** Texts by name, as settings are kept. */
type Texts = Readonly<Record<string, string>>;

export function areSameTexts(a: Texts, b: Texts): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
