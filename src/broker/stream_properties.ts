/** The configuration that makes a topic a durable stream over HTTP: part of the table of topics' configuration. */
import type { TopicProperty } from "./topic_properties.ts";

/** It becomes a header of answers. */
const MEDIA_TYPE = {
  like: /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+(?: *;[\x20-\x7e]*)?$/,
  words: "a media type, in ASCII",
} as const;
/** The last date that has a year of four digits. */
const END_OF_RFC_3339_MS = 253_402_300_799_999n;

export const STREAM_PROPERTIES: readonly TopicProperty[] = [
  {
    name: "skerry.stream.content.type",
    type: "string",
    fallback: "application/octet-stream",
    like: MEDIA_TYPE,
    synonyms: [],
    documentation:
      "What the topic is as a durable stream over HTTP; application/json makes its records JSON values.",
  },
  {
    name: "skerry.stream.deleted",
    type: "boolean",
    fallback: "false",
    synonyms: [],
    byBroker: true,
    documentation:
      "Set by the broker: as a durable stream it was deleted, and stays for its forks only.",
  },
  {
    name: "skerry.stream.expires.ms",
    type: "long",
    fallback: "-1",
    min: -1n,
    max: END_OF_RFC_3339_MS,
    synonyms: [],
    documentation: "When the topic is deleted, in milliseconds since 1970; -1 for never.",
  },
  {
    name: "skerry.stream.fork.offset",
    type: "long",
    fallback: "0",
    min: 0n,
    synonyms: [],
    byBroker: true,
    documentation: "Set by the broker: the offset at which a fork leaves its source.",
  },
  {
    name: "skerry.stream.fork.part",
    type: "long",
    fallback: "0",
    min: 0n,
    synonyms: [],
    byBroker: true,
    documentation:
      "Set by the broker: how much of the source's message at its place a fork was asked to take.",
  },
  {
    name: "skerry.stream.fork.source",
    type: "string",
    fallback: "",
    synonyms: [],
    byBroker: true,
    documentation:
      "Set by the broker: topic id and partition of the durable stream that this one was forked from.",
  },
  {
    name: "skerry.stream.ttl.seconds",
    type: "long",
    fallback: "-1",
    min: -1n,
    max: 9_999_999_999n,
    synonyms: [],
    documentation:
      "How long after its last use as a durable stream over HTTP the topic is deleted; -1 for never.",
  },
];
