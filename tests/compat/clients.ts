/** The clients: what each needs, how it is installed, which program plays its behaviours. */
import { join, resolve } from "node:path";
import process from "node:process";
import type { Kind } from "./behaviours.ts";
import { newJava } from "./registry/java.ts";

export interface Client {
  /** As it is named on the command line. */
  readonly name: string;
  readonly title: string;
  readonly kind: Kind;
  /** Not run where this is missing; what has none is installed or comes with npm. */
  readonly toolchain: string | null;
  /** Of what is not found by its name: why it is not run, or null. */
  readonly lack?: () => string | null;
  /** Arguments of scripts/install_clients.sh; none for what npm has brought. */
  readonly install: readonly string[];
  /** Command and arguments; the address of the broker follows. */
  readonly program: (clients: string) => readonly string[];
  readonly limitS: number;
}

/** The first one whose share consumer is stable is 4.2. */
const SHARE_VERSION = "4.4.0";

const here = (path: string) => resolve("tests/compat", path);

function java(version: string): Client {
  const jars = (clients: string) => join(clients, "java", version);
  return {
    name: `java-${version.split(".")[0]}`,
    title: "Java",
    kind: "client",
    toolchain: null,
    install: ["java", version],
    program: (clients) => [
      "java",
      "-XX:TieredStopAtLevel=1",
      "-Dskerry.version=" + version,
      "-cp",
      `${jars(clients)}/classes:${jars(clients)}/*`,
      "Compat",
    ],
    limitS: 240,
  };
}

function python(name: string, title: string, file: string): Client {
  return {
    name,
    title,
    kind: "client",
    toolchain: "python3",
    install: ["python"],
    program: (clients) => [join(clients, "python/bin/python"), here(`python/${file}`)],
    limitS: 180,
  };
}

function go(name: string, title: string): Client {
  return {
    name,
    title,
    kind: "client",
    toolchain: "go",
    install: ["go", name],
    program: (clients) => [join(clients, "go", name)],
    limitS: 150,
  };
}

function rust(name: string): Client {
  return {
    name,
    title: name,
    kind: "client",
    toolchain: "cargo",
    install: ["rust", name],
    program: (clients) => [join(clients, "rust", name, "debug", name)],
    limitS: 150,
  };
}

function npm(name: string, title: string): Client {
  const program = () => [process.execPath, here(`${name}/compat.ts`)];
  return { name, title, kind: "client", toolchain: null, install: [], program, limitS: 240 };
}

function ofKafka(name: string, title: string, kind: Kind, program: Client["program"]): Client {
  return { name, title, kind, toolchain: null, install: ["tools"], program, limitS: 240 };
}

export const CLIENTS: readonly Client[] = [
  {
    name: "kcat",
    title: "kcat",
    kind: "client",
    toolchain: null,
    install: ["kcat"],
    program: () => [here("kcat/compat.sh")],
    limitS: 150,
  },
  {
    ...python("confluent-debian", "confluent-kafka (Debian)", "compat.py"),
    toolchain: null,
    install: ["confluent-debian"],
    program: () => ["/usr/bin/python3", here("python/compat.py")],
  },
  python("confluent", "confluent-kafka", "compat.py"),
  python("aiokafka", "aiokafka", "aio.py"),
  python("kafka-python", "kafka-python", "kafka_python.py"),
  java("3.9.2"),
  java("4.4.0"),
  go("franz_go", "franz-go"),
  go("sarama", "sarama"),
  {
    ...go("sarama", "sarama, as for 1.1"),
    name: "sarama-old",
    program: (clients) => [join(clients, "go/sarama"), "-as", "1.1.0"],
  },
  go("kafka_go", "kafka-go"),
  npm("kafkajs", "kafkajs"),
  npm("platformatic", "@platformatic/kafka"),
  rust("rskafka"),
  ofKafka("tools", "Kafka's tools", "tools", (clients) => [here("tools/compat.sh"), clients]),
  ofKafka("streams", "Kafka Streams", "streams", (clients) => [
    "java",
    "-XX:TieredStopAtLevel=1",
    "-cp",
    `${join(clients, "streams")}:${join(clients, "tools")}/*`,
    "WordCount",
  ]),
  {
    name: "share",
    title: "KafkaShareConsumer",
    kind: "share",
    toolchain: null,
    install: ["share", SHARE_VERSION],
    program: (clients) => [
      process.execPath,
      here("share/compat.ts"),
      join(clients, "share"),
      join(clients, "java", SHARE_VERSION),
    ],
    limitS: 240,
  },
  {
    name: "connect",
    title: "Kafka Connect",
    kind: "connect",
    toolchain: null,
    install: ["connect"],
    program: (clients) => [process.execPath, here("connect/compat.ts"), join(clients, "connect")],
    limitS: 240,
  },
  {
    name: "registry",
    title: "Apicurio Registry",
    kind: "registry",
    toolchain: null,
    lack: () => newJava() === null ? "there is no Java from 21 on here" : null,
    install: ["registry"],
    program: (clients) => [
      process.execPath,
      here("registry/compat.ts"),
      join(clients, "registry"),
    ],
    limitS: 240,
  },
];
