"""The behaviours of the matrix, with kafka-python against one broker. Usage: kafka_python.py BOOTSTRAP"""
import logging
import os
import sys
import time

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import AbortTransactionSpec, ConfigResource, ConfigResourceType, NewPartitions, NewTopic, OffsetSpec
from kafka.structs import OffsetAndMetadata

from behaviours import behaviour, fails, same, skip, until

logging.disable(logging.CRITICAL)
BOOTSTRAP = sys.argv[1]
RECORDS = 500
RUN = f"kafka-python-{time.time_ns()}"
admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def make(name, partitions=1):
    topic = f"{RUN}-{name}"
    admin.create_topics([NewTopic(topic, partitions, 1)])
    return topic


def producer(**config):
    return KafkaProducer(bootstrap_servers=BOOTSTRAP, max_block_ms=20_000, **config)


def send(topic, values, **config):
    client = producer(**config)
    sent = [client.send(topic, value.encode()) for value in values]
    client.flush(30)
    for each in sent:
        each.get(20)
    client.close()


def consumer(*topics, **config):
    fixed = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    return KafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, **{**fixed, **config})


def poll(client, count, seconds=30):
    got = []
    end = time.time() + seconds
    while len(got) < count and time.time() < end:
        for batch in client.poll(timeout_ms=200, max_records=count - len(got)).values():
            got.extend(batch)
    return got


def read(topic, count, offset=0, **config):
    client = consumer(**config)
    client.assign([TopicPartition(topic, 0)])
    client.seek(TopicPartition(topic, 0), offset)
    got = poll(client, count)
    client.close()
    return got


def values(records):
    return [None if each.value is None else each.value.decode() for each in records]


def numbered(count):
    return [f"v{i}" for i in range(count)]


def produce_and_read(name, **config):
    topic = make(name)
    send(topic, numbered(RECORDS), **config)
    same(values(read(topic, RECORDS)), numbered(RECORDS), "values")


def metadata():
    topic = make("metadata", 3)
    [described] = admin.describe_topics([topic])
    same(len(described["partitions"]), 3, "partitions")
    client = consumer()
    same(client.partitions_for_topic(topic), {0, 1, 2}, "seen by a consumer")
    client.close()


def shapes():
    topic = make("shapes")
    client = producer()
    client.send(topic, b"v", key=b"k", headers=[("a", b"1"), ("a", b"2")]).get(20)
    client.send(topic, None, key=b"k").get(20)
    client.send(topic, b"").get(20)
    client.close()
    got = [(each.key, each.value, list(each.headers)) for each in read(topic, 3)]
    same(got, [(b"k", b"v", [("a", b"1"), ("a", b"2")]), (b"k", None, []), (None, b"", [])], "records")


def large_batch():
    topic = make("large")
    sent = [str(i) + "x" * 900 for i in range(3000)]
    send(topic, sent, batch_size=900_000, linger_ms=200)
    assert values(read(topic, 3000)) == sent, "3000 records of 900 bytes"


def offsets():
    topic = make("offsets")
    first = TopicPartition(topic, 0)
    client = producer()
    for i in range(10):
        client.send(topic, f"v{i}".encode(), partition=0, timestamp_ms=1000 * (i + 1)).get(20)
    client.close()

    def from_time():
        client = consumer()
        same(client.offsets_for_times({first: 4500})[first].offset, 4, "offset of 4500")
        client.close()
        same(values(read(topic, 1, 4)), ["v4"], "value there")

    def listed():
        client = consumer()
        same((client.beginning_offsets([first])[first], client.end_offsets([first])[first]), (0, 10), "ends")
        client.close()
        found = admin.list_partition_offsets({first: OffsetSpec.MAX_TIMESTAMP})
        same(found[first].offset, 9, "of the greatest time")

    behaviour("consume from an offset", lambda: same(values(read(topic, 3, 7)), ["v7", "v8", "v9"], "values"))
    behaviour("consume from a time", from_time)
    behaviour("list offsets", listed)


def committed_sum(group):
    found = admin.list_group_offsets({group: None})[group]
    return sum(each.offset for each in found.values())


def classic_group():
    topic, group = make("group", 4), f"{RUN}-classic"
    seen = set()
    member = {"group_id": group, "heartbeat_interval_ms": 300, "session_timeout_ms": 10_000}

    def two_members():
        both = [consumer(topic, **member) for _ in range(2)]

        def read_both():
            for each in both:
                seen.update((record.partition, record.offset) for record in poll(each, 50, 0.2))
            return [len(each.assignment()) for each in both]

        until("two partitions each", lambda: read_both() == [2, 2])
        send(topic, numbered(400))
        until("all read", lambda: read_both() and len(seen) == 400)
        for each in both:
            each.commit()
            each.close()

    def resume():
        send(topic, numbered(100))
        client = consumer(topic, **member)
        got = {(record.partition, record.offset) for record in poll(client, 100)}
        same((len(got), len(got & seen)), (100, 0), "records after the commits, of these seen before")
        client.commit()
        client.close()

    behaviour("group: two members", two_members)
    behaviour("group: resume", resume)
    behaviour("committed offsets", lambda: same(committed_sum(group), 500, "sum of all"))


def transactional(name):
    client = producer(transactional_id=f"{RUN}-{name}")
    client.init_transactions()
    return client


def transaction(client, topic, sent, commit=True):
    client.begin_transaction()
    for value in sent:
        client.send(topic, value.encode()).get(20)
    if commit:
        client.commit_transaction()
    else:
        client.abort_transaction()


def committed(topic, count):
    return values(read(topic, count, isolation_level="read_committed"))


def txn_commit():
    topic = make("txn-commit")
    client = transactional("commit")
    for i in range(3):
        transaction(client, topic, [f"c{i}"] * 3)
    client.close()
    same(len(committed(topic, 9)), 9, "records")


def txn_abort():
    topic = make("txn-abort")
    client = transactional("abort")
    for value, commit in [("a", True), ("b", False), ("c", False), ("d", True)]:
        transaction(client, topic, [value], commit)
    client.close()
    same(committed(topic, 2), ["a", "d"], "read_committed")
    same(values(read(topic, 4)), ["a", "b", "c", "d"], "all")


def txn_isolation():
    topic = make("txn-open")
    client = transactional("open")
    client.begin_transaction()
    client.send(topic, b"open").get(20)
    send(topic, ["v0", "v1"])
    reader = consumer(isolation_level="read_committed")
    reader.assign([TopicPartition(topic, 0)])
    reader.seek(TopicPartition(topic, 0), 0)
    same(len(poll(reader, 1, 1.5)), 0, "seen before the end")
    same(len(read(topic, 3)), 3, "seen by others")
    client.commit_transaction()
    same(values(poll(reader, 3)), ["open", "v0", "v1"], "seen after it")
    reader.close()
    client.close()


def txn_fencing():
    topic = make("txn-fence")
    old = transactional("fence")
    old.begin_transaction()
    old.send(topic, b"old").get(20)
    young = transactional("fence")
    transaction(young, topic, ["new"])
    young.close()
    fails("ProducerFencedError", old.commit_transaction)
    same(committed(topic, 1), ["new"], "committed")


def txn_transform():
    source, target, group = make("txn-in"), make("txn-out"), f"{RUN}-transform"
    send(source, numbered(6))
    for commit in [False, True, True]:
        reader = consumer(source, group_id=group, isolation_level="read_committed")
        client = transactional("transform")
        got = poll(reader, 3)
        client.begin_transaction()
        for each in got:
            client.send(target, each.value + b"!")
        offsets = {TopicPartition(source, 0): OffsetAndMetadata(got[-1].offset + 1, "", -1)}
        client.send_offsets_to_transaction(offsets, reader.group_metadata())
        if commit:
            client.commit_transaction()
        else:
            client.abort_transaction()
        client.close()
        reader.close()
    same(committed(target, 6), [f"v{i}!" for i in range(6)], "output")
    same(committed_sum(group), 6, "committed offset")


def admin_topics():
    topic = make("admin-topics", 2)
    fails("TopicAlreadyExistsError", lambda: admin.create_topics([NewTopic(topic, 2, 1)]))
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()


def admin_partitions():
    topic = make("admin-partitions", 2)
    admin.create_partitions({topic: NewPartitions(5)})
    [described] = admin.describe_topics([topic])
    same(len(described["partitions"]), 5, "partitions")


def admin_configs():
    topic = make("admin-configs")
    kind = ConfigResourceType.TOPIC
    admin.alter_configs([ConfigResource(kind, topic, {"retention.ms": "7200000"})])
    shown = admin.describe_configs([ConfigResource(kind, topic)], config_filter="all")
    assert "7200000" in str(shown) and "cleanup.policy" in str(shown), shown


def admin_delete_records():
    topic = make("admin-records")
    first = TopicPartition(topic, 0)
    send(topic, numbered(10))
    deleted = admin.delete_records({first: 4})
    same(deleted[first]["low_watermark"] if isinstance(deleted[first], dict) else deleted[first], 4, "low watermark")


def admin_groups():
    topic, group = make("admin-groups", 2), f"{RUN}-admin-group"
    send(topic, numbered(10))
    client = consumer(topic, group_id=group)
    same(len(poll(client, 10)), 10, "records")
    client.commit()
    assert "Stable" in str(admin.describe_groups([group]))
    client.close()
    admin.alter_group_offsets(group, {TopicPartition(topic, p): OffsetAndMetadata(1, "", -1) for p in range(2)})

    def delete_offsets():
        admin.delete_group_offsets(group, [TopicPartition(topic, 0)])
        same(committed_sum(group), 1, "sum of what is left")

    behaviour("admin: delete offsets", delete_offsets)
    assert group in str(admin.list_groups())
    admin.delete_groups([group])
    assert group not in str(admin.list_groups())


def open_transaction():
    topic = make("admin-open")
    first = TopicPartition(topic, 0)
    client = transactional("admin-open")
    client.begin_transaction()
    client.send(topic, b"open").get(20)

    def state():
        [only] = admin.describe_producers([first])[first].active_producers
        return only

    behaviour("admin: describe producers", lambda: same(state().current_transaction_start_offset, 0, "start"))

    def transactions():
        name = f"{RUN}-admin-open"
        assert "ONGOING" in str(admin.describe_transactions([name])).upper()
        assert name in str(admin.list_transactions())
        only = state()
        admin.abort_transaction(AbortTransactionSpec(first, only.producer_id, only.producer_epoch, 0))
        send(topic, ["v0"])
        same(committed(topic, 1), ["v0"], "after abort_transaction")

    behaviour("admin: describe transactions", transactions)


def log_dirs():
    topic = make("admin-dirs")
    send(topic, numbered(100))
    assert topic in str(admin.describe_log_dirs())


print(f"version\t{kafka.__version__}")
behaviour("metadata", metadata)
for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
    behaviour(f"produce {codec}", lambda: produce_and_read(codec, compression_type=None if codec == "none" else codec))
for acks in [0, 1, "all"]:
    behaviour(f"acks {acks}", lambda: produce_and_read(f"acks-{acks}", acks=acks, enable_idempotence=False))
behaviour("keys, headers, nulls", shapes)
behaviour("large batch", large_batch)
behaviour("idempotent producer", lambda: produce_and_read("idempotent", enable_idempotence=True, batch_size=500))
offsets()
classic_group()
behaviour("txn: commit", txn_commit)
behaviour("txn: abort", txn_abort)
behaviour("txn: read_committed", txn_isolation)
behaviour("txn: fencing", txn_fencing)
behaviour("txn: consume-transform-produce", txn_transform)
behaviour("admin: cluster", lambda: same(len(admin.describe_cluster()["brokers"]), 1, "brokers"))
behaviour("admin: topics", admin_topics)
behaviour("admin: partitions", admin_partitions)
behaviour("admin: configs", admin_configs)
behaviour("admin: delete records", admin_delete_records)
behaviour("admin: groups", admin_groups)
open_transaction()
behaviour("admin: log dirs", log_dirs)
skip("not in this client", "group: KIP-848", "admin: quotas")
sys.stdout.flush()
# Producers of failed transactions would wait for their end.
os._exit(0)
