"""The behaviours of the matrix, with confluent-kafka (librdkafka) against one broker. Usage: compat.py BOOTSTRAP"""
import os
import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from behaviours import behaviour, fails, same, skip, until

BOOTSTRAP = sys.argv[1]
RECORDS = 500
RUN = f"python-{time.time_ns()}"
LIBRDKAFKA = tuple(int(part) for part in confluent_kafka.libversion()[0].split("-")[0].split("."))
# Debian's confluent-kafka is from before most calls of the admin client.
IS_NEW = hasattr(AdminClient, "list_consumer_group_offsets")
admin = AdminClient({"bootstrap.servers": BOOTSTRAP})


def done(futures):
    return [future.result(20) for future in futures.values()]


def make(name, partitions=1):
    topic = f"{RUN}-{name}"
    done(admin.create_topics([NewTopic(topic, partitions, 1)]))
    return topic


def send(topic, values, **config):
    names = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "message.timeout.ms": 20_000, **names})
    errors = []
    for value in values:
        producer.produce(topic, value=value, on_delivery=lambda error, _: errors.append(error) if error else None)
    same((producer.flush(30), errors), (0, []), "undelivered")


def consumer(group, **config):
    names = {name.replace("_", "."): value for name, value in config.items()}
    fixed = {"bootstrap.servers": BOOTSTRAP, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**fixed, "enable.auto.commit": False, **names})


def poll(client, count, seconds=30):
    got = []
    end = time.time() + seconds
    while len(got) < count and time.time() < end:
        message = client.poll(0.2)
        if message is not None:
            assert not message.error(), message.error()
            got.append(message)
    return got


def read(topic, count, offset=0, isolation="read_uncommitted"):
    client = consumer(f"{RUN}-reader", isolation_level=isolation)
    client.assign([TopicPartition(topic, 0, offset)])
    got = poll(client, count)
    client.close()
    return got


def values(messages):
    return [None if each.value() is None else each.value().decode() for each in messages]


def numbered(count):
    return [f"v{i}" for i in range(count)]


def produce_and_read(name, **config):
    topic = make(name)
    send(topic, numbered(RECORDS), **config)
    same(values(read(topic, RECORDS)), numbered(RECORDS), "values")


def metadata():
    topic = make("metadata", 3)
    seen = admin.list_topics(timeout=20)
    same(len(seen.topics[topic].partitions), 3, "partitions")
    assert seen.topics[topic].partitions[0].leader in seen.brokers and seen.cluster_id


def shapes():
    topic = make("shapes")
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    producer.produce(topic, key="k", value="v", headers=[("a", b"1"), ("a", b"2"), ("n", None)])
    producer.flush(20)
    producer.produce(topic, key="k", value=None)
    producer.flush(20)
    producer.produce(topic, key=None, value="")
    producer.flush(20)
    got = [(each.key(), each.value(), each.headers()) for each in read(topic, 3)]
    headers = [("a", b"1"), ("a", b"2"), ("n", None)]
    same(got, [(b"k", b"v", headers), (b"k", None, None), (None, b"", None)], "records")


def large_batch():
    topic = make("large")
    sent = [str(i) + "x" * 900 for i in range(3000)]
    send(topic, sent, linger_ms=500, batch_size=1_000_000)
    same(values(read(topic, 3000)) == sent, True, "3000 records of 900 bytes")
    send(topic, ["y" * 990_000])
    same(len(read(topic, 1, 3000)[0].value()), 990_000, "a large record")


def offsets():
    topic = make("offsets")
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for i in range(10):
        producer.produce(topic, value=f"v{i}", timestamp=1000 * (i + 1))
        producer.flush(20)
    behaviour("consume from an offset", lambda: same(values(read(topic, 3, 7)), ["v7", "v8", "v9"], "values"))

    def by_time():
        client = consumer(f"{RUN}-reader")
        found = client.offsets_for_times([TopicPartition(topic, 0, 4500)], 20)
        same(found[0].offset, 4, "offset of 4500")
        same(values(read(topic, 1, found[0].offset)), ["v4"], "value there")
        client.close()

    def listed():
        client = consumer(f"{RUN}-reader")
        same(client.get_watermark_offsets(TopicPartition(topic, 0), 20), (0, 10), "watermarks")
        client.close()
        if IS_NEW:
            from confluent_kafka.admin import OffsetSpec

            specs = {"0": OffsetSpec.earliest(), "10": OffsetSpec.latest(), "9": OffsetSpec.max_timestamp()}
            for expected, spec in specs.items():
                [found] = done(admin.list_offsets({TopicPartition(topic, 0): spec}))
                same(str(found.offset), expected, type(spec).__name__)

    behaviour("consume from a time", by_time)
    behaviour("list offsets", listed)


def classic_group():
    topic = make("group", 4)
    group = f"{RUN}-classic"
    seen = set()
    member = {"heartbeat_interval_ms": 300, "session_timeout_ms": 10_000}

    def two_members():
        both = [consumer(group, **member) for _ in range(2)]
        for each in both:
            each.subscribe([topic])

        def read_both():
            for each in both:
                seen.update((message.partition(), message.offset()) for message in poll(each, 50, 0.1))
            return [len(each.assignment()) for each in both]

        until("two partitions each", lambda: read_both() == [2, 2])
        send(topic, numbered(400))
        until("all read", lambda: read_both() and len(seen) == 400)
        for each in both:
            each.commit(asynchronous=False)
            each.close()

    def resume():
        send(topic, numbered(100))
        client = consumer(group, **member)
        client.subscribe([topic])
        got = {(message.partition(), message.offset()) for message in poll(client, 100)}
        same((len(got), len(got & seen)), (100, 0), "records after the commits, of these seen before")
        client.commit(asynchronous=False)
        client.close()

    def committed():
        client = consumer(group)
        got = client.committed([TopicPartition(topic, partition) for partition in range(4)], 20)
        same(sum(each.offset for each in got), 500, "sum of all")
        client.close()

    behaviour("group: two members", two_members)
    behaviour("group: resume", resume)
    behaviour("committed offsets", committed)


def transactional(name):
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": f"{RUN}-{name}"})
    producer.init_transactions(30)
    return producer


def transaction(producer, topic, sent, commit=True):
    producer.begin_transaction()
    for value in sent:
        producer.produce(topic, value=value)
    same(producer.flush(20), 0, "undelivered")
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def committed_values(topic, count):
    return values(read(topic, count, isolation="read_committed"))


def txn_commit():
    topic = make("txn-commit")
    producer = transactional("commit")
    for i in range(3):
        transaction(producer, topic, [f"c{i}"] * 10)
    same(len(committed_values(topic, 30)), 30, "records")


def txn_abort():
    topic = make("txn-abort")
    producer = transactional("abort")
    for value, commit in [("a", True), ("b", False), ("c", False), ("d", True)]:
        transaction(producer, topic, [value], commit)
    same(committed_values(topic, 2), ["a", "d"], "read_committed")
    same(values(read(topic, 4)), ["a", "b", "c", "d"], "all")


def txn_isolation():
    topic = make("txn-open")
    producer = transactional("open")
    producer.begin_transaction()
    producer.produce(topic, value="open")
    producer.flush(20)
    send(topic, ["v0", "v1"])
    client = consumer(f"{RUN}-reader", isolation_level="read_committed")
    client.assign([TopicPartition(topic, 0, 0)])
    same(len(poll(client, 1, 1.5)), 0, "seen before the end")
    same(len(read(topic, 3)), 3, "seen by others")
    producer.commit_transaction(30)
    same(values(poll(client, 3)), ["open", "v0", "v1"], "seen after it")
    client.close()


def txn_fencing():
    topic = make("txn-fence")
    old = transactional("fence")
    old.begin_transaction()
    old.produce(topic, value="old")
    old.flush(20)
    transaction(transactional("fence"), topic, ["new"])
    fails("_FENCED", lambda: old.commit_transaction(30))
    same(committed_values(topic, 1), ["new"], "committed")


def txn_transform():
    source, target = make("txn-in"), make("txn-out")
    group = f"{RUN}-transform"
    send(source, numbered(6))
    for commit in [False, True, True]:
        client = consumer(group, isolation_level="read_committed")
        client.subscribe([source])
        producer = transactional("transform")
        got = poll(client, 3)
        producer.begin_transaction()
        for each in got:
            producer.produce(target, value=each.value() + b"!")
        next_offset = TopicPartition(source, 0, got[-1].offset() + 1)
        producer.send_offsets_to_transaction([next_offset], client.consumer_group_metadata(), 30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        client.close()
    same(committed_values(target, 6), [f"v{i}!" for i in range(6)], "output")
    client = consumer(group)
    same(client.committed([TopicPartition(source, 0)], 20)[0].offset, 6, "committed offset")
    client.close()


def admin_topics():
    topic = make("admin-topics", 2)
    fails("TOPIC_ALREADY_EXISTS", lambda: done(admin.create_topics([NewTopic(topic, 2, 1)])))
    done(admin.delete_topics([topic]))
    assert topic not in admin.list_topics(timeout=20).topics


def admin_partitions():
    topic = make("admin-partitions", 2)
    done(admin.create_partitions([NewPartitions(topic, 5)]))
    same(len(admin.list_topics(topic, timeout=20).topics[topic].partitions), 5, "partitions")


def admin_configs():
    topic = make("admin-configs")
    resource = ConfigResource("topic", topic, set_config={"retention.ms": "7200000"})
    done(admin.alter_configs([resource]))
    [shown] = done(admin.describe_configs([ConfigResource("topic", topic)]))
    same((shown["retention.ms"].value, shown["cleanup.policy"].value), ("7200000", "delete"), "configs")
    wrong = ConfigResource("topic", topic, set_config={"retention.ms": "x"})
    fails("INVALID_CONFIG", lambda: done(admin.alter_configs([wrong])))


def admin_cluster():
    seen = admin.describe_cluster().result(20)
    same(len(seen.nodes), 1, "nodes")
    assert seen.controller is not None and seen.cluster_id


def admin_delete_records():
    topic = make("admin-records")
    send(topic, numbered(10))
    [deleted] = done(admin.delete_records([TopicPartition(topic, 0, 4)]))
    same(deleted.low_watermark, 4, "low watermark")


def admin_groups():
    topic = make("admin-groups")
    group = f"{RUN}-admin-group"
    send(topic, numbered(10))
    client = consumer(group)
    client.subscribe([topic])
    same(len(poll(client, 10)), 10, "records")
    client.commit(asynchronous=False)
    [described] = done(admin.describe_consumer_groups([group]))
    same(len(described.members), 1, "members")
    fails("NON_EMPTY_GROUP", lambda: done(admin.delete_consumer_groups([group])))
    client.close()
    assert group in [each.group_id for each in admin.list_consumer_groups().result(20).valid]
    done(admin.delete_consumer_groups([group]))
    assert group not in [each.group_id for each in admin.list_consumer_groups().result(20).valid]


print(f"version\t{getattr(confluent_kafka, '__version__', confluent_kafka.version()[0])} / {'.'.join(map(str, LIBRDKAFKA))}")
behaviour("metadata", metadata)
for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
    behaviour(f"produce {codec}", lambda: produce_and_read(codec, compression_type=codec))
for acks in ["0", "1", "all"]:
    behaviour(f"acks {acks}", lambda: produce_and_read(f"acks-{acks}", acks=acks))
behaviour("keys, headers, nulls", shapes)
behaviour("large batch", large_batch)
behaviour("idempotent producer", lambda: produce_and_read("idempotent", enable_idempotence=True, batch_num_messages=10))
offsets()
classic_group()
if LIBRDKAFKA >= (2, 12):
    import consumer_groups

    behaviour("group: KIP-848", lambda: consumer_groups.run(BOOTSTRAP))
else:
    skip("librdkafka has it since 2.12", "group: KIP-848")
behaviour("txn: commit", txn_commit)
behaviour("txn: abort", txn_abort)
behaviour("txn: read_committed", txn_isolation)
behaviour("txn: fencing", txn_fencing)
behaviour("txn: consume-transform-produce", txn_transform)
behaviour("admin: topics", admin_topics)
behaviour("admin: partitions", admin_partitions)
behaviour("admin: configs", admin_configs)
newer = {"admin: cluster": admin_cluster, "admin: delete records": admin_delete_records, "admin: groups": admin_groups}
for name, body in newer.items():
    if IS_NEW:
        behaviour(name, body)
    else:
        skip("not in this version", name)
skip(
    "not in its admin client",
    "admin: delete offsets",
    "admin: describe producers",
    "admin: describe transactions",
    "admin: quotas",
    "admin: log dirs",
)
sys.stdout.flush()
# Producers of failed transactions would wait in their destructors.
os._exit(0)
