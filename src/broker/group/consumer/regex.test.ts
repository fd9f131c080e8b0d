import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createFakeClock } from "../../../../tests/support/fake_clock.ts";
import { FakeTopics } from "../../../../tests/support/consumer_topics.ts";
import { compileRegex } from "./regex.ts";
import { RegexTopics } from "./regex_topics.ts";

function matches(pattern: string, name: string): boolean {
  const compiled = compileRegex(pattern);
  assert.ok(compiled.ok, `${pattern}: ${compiled.ok ? "" : compiled.message}`);
  return compiled.regex.matches(name);
}

/** Pattern, names that it means, names that it does not: RE2's syntax page, matched against whole names. */
const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["foo", ["foo"], ["foobar", "xfoo", "fo", "Foo"]],
  ["foo.*", ["foo", "foobar", "foo.1"], ["xfoo"]],
  ["^foo$", ["foo"], ["foo1"]],
  ["\\Afoo\\z", ["foo"], ["foo1"]],
  ["a|b|cd", ["a", "b", "cd"], ["ab", "c"]],
  ["(?:a|b)+c?", ["a", "abab", "abc"], ["c", ""]],
  ["a{2}", ["aa"], ["a", "aaa"]],
  ["a{2,}", ["aa", "aaaa"], ["a"]],
  ["a{1,3}?b", ["ab", "aaab"], ["b", "aaaab"]],
  ["a{,3}", ["a{,3}"], ["aaa"]],
  ["x*?", ["", "xx"], ["y"]],
  ["[a-c]+", ["abc"], ["abd", ""]],
  ["[^a-c]+", ["xyz"], ["xa"]],
  ["[]a]", ["]", "a"], ["b"]],
  ["[^]a]", ["b"], ["]", "a"]],
  ["[a-]", ["a", "-"], ["b"]],
  ["[\\d_]+", ["1_2"], ["a"]],
  ["[[:alpha:]]+", ["abZ"], ["a1"]],
  ["[[:^digit:]x]+", ["ab"], ["1"]],
  ["\\d\\w\\s*", ["1a", "1_"], ["a1"]],
  ["\\D\\W", ["a-"], ["1-"]],
  ["orders\\.eu", ["orders.eu"], ["ordersxeu"]],
  ["\\Qa.b*\\Ec+", ["a.b*c", "a.b*cc"], ["axb*c"]],
  ["\\x41\\x{42}\\103", ["ABC"], ["abc"]],
  ["(?i)Foo-[a-b]", ["fOO-A"], ["fOO-C"]],
  ["(?i:a)b", ["Ab", "ab"], ["aB"]],
  ["((?i)a)b", ["Ab"], ["AB"]],
  ["(?P<n>a)(?<m>b)", ["ab"], ["a"]],
  ["\\bfoo\\b.*", ["foo-x", "foo"], ["foox"]],
  ["foo\\B.", ["foox"], ["foo-"]],
  ["\\pL+", ["abC"], ["a1"]],
  ["\\p{Latin}\\PL", ["a1"], ["ab", "11"]],
  ["(a*)*", ["", "aaa"], ["b"]],
  ["(|a)+", ["", "aa"], ["b"]],
  ["", [""], ["a"]],
  ["é", [], ["e"]],
];

for (const [pattern, yes, no] of CASES) {
  test(`/${pattern}/ means what RE2 says`, () => {
    for (const name of yes) assert.ok(matches(pattern, name), `"${name}" should match`);
    for (const name of no) assert.ok(!matches(pattern, name), `"${name}" should not match`);
  });
}

test("what RE2 refuses is refused", () => {
  const wrong = [
    "(",
    ")",
    "a)",
    "(a",
    "[a",
    "[z-a]",
    "*",
    "+a",
    "?",
    "a**",
    "a+*",
    "a{1}{2}",
    "a{1001}",
    "a{3,2}",
    "\\",
    "\\y",
    "\\1",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    "(?#c)",
    "[[:nope:]]",
    "\\p{Nope}",
    "(?)",
    "a|*",
  ];
  for (const pattern of wrong) {
    assert.equal(compileRegex(pattern).ok, false, `${pattern} should be refused`);
  }
});

test("an expression that would take for ever elsewhere is matched in linear time, or refused", () => {
  assert.ok(!matches("(a+)+b", "a".repeat(249)));
  assert.ok(!matches("(a|aa)+", `${"a".repeat(248)}b`));
  assert.equal(compileRegex("((a{1000}){1000}){1000}").ok, false);
  assert.equal(compileRegex("((((){1000}){1000}){1000}){1000}").ok, false);
  assert.equal(compileRegex("(".repeat(1000) + ")".repeat(1000)).ok, false);
  assert.equal(compileRegex("a".repeat(10_000)).ok, false);
});

/** Patterns that mean the same to the language's own engine. */
const { pattern } = fc.letrec<{ pattern: string; atom: string }>((tie) => ({
  atom: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom("a", "b", "c", ".", "[ab]", "[^a]", "\\w", "\\.", "^", "$", "\\b"),
    tie("pattern").map((inner) => `(?:${inner})`),
  ),
  pattern: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(tie("atom"), fc.constantFrom("", "", "*", "+", "?", "{2}", "{0,2}")).map((
      [atom, times],
    ) => "^$".includes(atom) || atom === "\\b" ? atom : atom + times),
    fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => a + b),
    fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `${a}|${b}`),
  ),
}));
const name = fc.string({ unit: fc.constantFrom("a", "b", "c", ".", "-"), maxLength: 6 });

test("it agrees with the language's own engine where both have the same syntax", () => {
  fc.assert(fc.property(pattern, name, (text, topic) => {
    assert.equal(
      matches(text, topic),
      new RegExp(`^(?:${text})$`).test(topic),
      `/${text}/ ${topic}`,
    );
  }));
});

test("topics of an expression are found again only when topics changed", async () => {
  const topics = new FakeTopics({ "a-1": 1, "a-2": 1, b: 1 });
  const regexes = new RegexTopics(createFakeClock(), topics);
  assert.equal(await regexes.resolve("a-.*"), null);
  const first = regexes.known("a-.*");
  assert.deepEqual(first?.topics, ["a-1", "a-2"]);
  await regexes.resolve("a-.*");
  assert.equal(regexes.known("a-.*"), first);
  topics.set("a-3", 1);
  assert.equal(regexes.isCurrent("a-.*"), false);
  await regexes.resolve("a-.*");
  assert.deepEqual(regexes.known("a-.*")?.topics, ["a-1", "a-2", "a-3"]);
  assert.match(await regexes.resolve("(") ?? "", /missing \)/);
});
