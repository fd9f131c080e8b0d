/** Classes of ASCII characters as tables: `table[code]` is 1 for what belongs to the class. */

const SIZE = 128;

export function tableOf(holds: (code: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: SIZE }, (_, code) => holds(code) ? 1 : 0);
}

export function range(from: number, to: number): Uint8Array {
  return tableOf((code) => code >= from && code <= to);
}

/** Also the other case of each letter. */
export function folded(table: Uint8Array): Uint8Array {
  return tableOf((code) => {
    const char = String.fromCharCode(code);
    return table[code] === 1 || table[char.toLowerCase().charCodeAt(0)] === 1 ||
      table[char.toUpperCase().charCodeAt(0)] === 1;
  });
}

function of(pattern: RegExp): Uint8Array {
  return tableOf((code) => pattern.test(String.fromCharCode(code)));
}

function not(table: Uint8Array): Uint8Array {
  return tableOf((code) => table[code] === 0);
}

const PERL: Readonly<Record<string, RegExp>> = { d: /[0-9]/, w: /\w/, s: /[\t\n\f\r ]/ };

/** Null when nobody knows the name. */
function unicodeClass(name: string): Uint8Array | null {
  if (name === "Any") return tableOf(() => true);
  for (const property of [name, `Script=${name}`]) {
    try {
      return of(new RegExp(`^\\p{${property}}$`, "u"));
    } catch {
      // The next form may be it.
    }
  }
  return null;
}

/** `d`, `D`, ... or `pName`, `PName`. */
export function classEscape(name: string): Uint8Array | null {
  const letter = name[0]!;
  const perl = PERL[letter.toLowerCase()];
  const table = perl === undefined ? unicodeClass(name.slice(1)) : of(perl);
  if (table === null) return null;
  return letter === letter.toLowerCase() ? table : not(table);
}

const POSIX: Readonly<Record<string, RegExp>> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  ascii: /[^]/,
  blank: /[\t ]/,
  cntrl: /\p{Cc}/u,
  digit: /[0-9]/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[\t\n\v\f\r ]/,
  upper: /[A-Z]/,
  word: /\w/,
  xdigit: /[0-9A-Fa-f]/,
};

export function posixClass(name: string, isNegated: boolean): Uint8Array | null {
  const pattern = Object.hasOwn(POSIX, name) ? POSIX[name] : undefined;
  if (pattern === undefined) return null;
  return isNegated ? not(of(pattern)) : of(pattern);
}
