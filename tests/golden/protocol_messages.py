#!/usr/bin/env python3
"""Writes protocol_messages.json: one sample of every message in every version, encoded straight from
Kafka's own JSON descriptions. It shares nothing with src/protocol, so its bytes can judge ours.
Usage: protocol_messages.py FOLDER-WITH-THE-JSON-FILES
"""
import json, os, re, struct, sys

APIS = """Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup Heartbeat
LeaveGroup SyncGroup DescribeGroups ListGroups ApiVersions CreateTopics DeleteTopics InitProducerId
OffsetForLeaderEpoch DescribeConfigs CreatePartitions DeleteGroups IncrementalAlterConfigs
ListPartitionReassignments DescribeCluster DeleteRecords AlterConfigs DescribeLogDirs ElectLeaders
AlterPartitionReassignments OffsetDelete DescribeClientQuotas AlterClientQuotas UpdateFeatures
ListConfigResources DescribeTopicPartitions""".split()
MESSAGES = [api + kind for api in APIS for kind in ("Request", "Response")]
MESSAGES += ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"]


def load(folder, name):
    with open(os.path.join(folder, name + ".json")) as file:
        return json.loads(re.sub(r"^\s*//.*$", "", file.read(), flags=re.M))


def within(versions, version):
    if versions in (None, "none"):
        return False
    low, dash, high = versions.rstrip("+").partition("-")
    if versions.endswith("+"):
        return version >= int(low)
    return int(low) <= version <= int(high if dash else low)


def uvarint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Sampler:
    """`variant` 0 fills every field, 1 takes null, empty and default wherever they are legal."""

    def __init__(self, message, version, variant):
        self.version, self.variant, self.count = version, variant, 0
        self.flexible = within(message["flexibleVersions"], version)
        self.common = {one["name"]: one["fields"] for one in message.get("commonStructs", [])}

    def length(self, size, form):
        if self.flexible:
            return uvarint(size + 1)
        return struct.pack(form, size)

    def scalar(self, kind):
        self.count += 1
        n = self.count
        if kind == "bool":
            return n % 2 == 1, bytes([n % 2])
        if kind == "uuid":
            raw = bytes((n * 16 + i) % 256 for i in range(16))
            return raw.hex(), raw
        if kind == "string":
            text = f"s{n}-\u00e9"
            return text, self.length(len(text.encode()), ">h") + text.encode()
        if kind in ("bytes", "records"):
            raw = bytes((n + i) % 256 for i in range(n % 200))
            return {"hex": raw.hex()}, self.length(len(raw), ">i") + raw
        form, value = {"int8": (">b", -n % 100), "int16": (">h", 300 + n), "int32": (">i", 70000 * n - 1000000),
                       "int64": (">q", (n << 40) + n), "float64": (">d", n + 0.25)}[kind]
        return value, struct.pack(form, value)

    def null(self, field):
        kind = field["type"]
        if not kind.startswith("[]") and field.get("fields"):
            return b"\xff"
        if self.flexible:
            return b"\0"
        return struct.pack(">h" if kind == "string" else ">i", -1)

    def value(self, kind, field):
        if kind.startswith("[]"):
            size = 2 if self.variant == 0 else 0
            items = [self.value(kind[2:], field) for _ in range(size)]
            return [item[0] for item in items], self.length(size, ">i") + b"".join(item[1] for item in items)
        fields = field.get("fields") or self.common.get(kind)
        if not fields:
            return self.scalar(kind)
        value, raw = self.struct(fields)
        if kind == field["type"] and field.get("nullableVersions"):
            raw = b"\x01" + raw
        return value, raw

    def struct(self, fields):
        values, out, tags = {}, b"", []
        for field in fields:
            if not within(field["versions"], self.version):
                continue
            name = field["name"][0].lower() + field["name"][1:]
            tagged = within(field.get("taggedVersions"), self.version)
            if tagged and self.variant == 1:
                continue
            if self.variant == 1 and within(field.get("nullableVersions"), self.version):
                value, raw = None, self.null(field)
            else:
                value, raw = self.value(field["type"], field)
                if tagged and value is False:  # a default is never sent: take the next sample
                    value, raw = self.value(field["type"], field)
            values[name] = value
            if tagged:
                tags.append((field["tag"], raw))
            else:
                out += raw
        if self.flexible:
            out += uvarint(len(tags))
            for tag, raw in sorted(tags):
                out += uvarint(tag) + uvarint(len(raw)) + raw
        return values, out


def main(folder):
    frames = []
    for name in MESSAGES:
        message = load(folder, name)
        low, _, high = message["validVersions"].partition("-")
        last = int(high or low)
        if name.startswith("InitProducerId"):
            last = 5  # 6 is unstable
        for version in range(int(low), last + 1):
            for variant in (0, 1):
                value, raw = Sampler(message, version, variant).struct(message["fields"])
                frames.append({"message": name, "version": version, "value": value, "hex": raw.hex()})
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "protocol_messages.json")
    with open(target, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in frames) + "\n]\n")
    print(len(frames), "frames")


main(sys.argv[1])
