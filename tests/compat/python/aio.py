"""The behaviours of the matrix, with aiokafka (not librdkafka) against one broker. Usage: aio.py BOOTSTRAP"""
import asyncio
import sys
import time

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import ProducerFenced, TopicAlreadyExistsError

from behaviours import behaviour_async as behaviour
from behaviours import same, skip

BOOTSTRAP = sys.argv[1]
RECORDS = 500
RUN = f"aio-{time.time_ns()}"
admin = None


async def make(name, partitions=1):
    topic = f"{RUN}-{name}"
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    return topic


async def with_producer(body, **config):
    producer = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, request_timeout_ms=20_000, **config)
    await producer.start()
    try:
        return await body(producer)
    finally:
        await producer.stop()


async def send(topic, values, **config):
    async def body(producer):
        sent = [await producer.send(topic, value.encode()) for value in values]
        await producer.flush()
        if config.get("acks") != 0:
            for each in sent:
                await each

    await with_producer(body, **config)


async def with_consumer(topics, body, **config):
    fixed = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 300}
    consumer = AIOKafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, **{**fixed, **config})
    await consumer.start()
    try:
        return await body(consumer)
    finally:
        await consumer.stop()


async def poll(consumer, count, seconds=30):
    got = []
    end = time.time() + seconds
    while len(got) < count and time.time() < end:
        for batch in (await consumer.getmany(timeout_ms=300, max_records=count - len(got))).values():
            got.extend(batch)
    return got


async def read(topic, count, offset=0, **config):
    async def body(consumer):
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), offset)
        return await poll(consumer, count)

    return await with_consumer([], body, **config)


def values(records):
    return [None if each.value is None else each.value.decode() for each in records]


def numbered(count):
    return [f"v{i}" for i in range(count)]


async def produce_and_read(name, **config):
    topic = await make(name)
    await send(topic, numbered(RECORDS), **config)
    same(values(await read(topic, RECORDS)), numbered(RECORDS), "values")


async def metadata():
    topic = await make("metadata", 3)
    [described] = await admin.describe_topics([topic])
    same(len(described["partitions"]), 3, "partitions")
    assert topic in await admin.list_topics()


async def shapes():
    topic = await make("shapes")

    async def body(producer):
        await producer.send_and_wait(topic, b"v", key=b"k", headers=[("a", b"1"), ("a", b"2")])
        await producer.send_and_wait(topic, None, key=b"k")
        await producer.send_and_wait(topic, b"", key=None)

    await with_producer(body)
    got = [(each.key, each.value, each.headers) for each in await read(topic, 3)]
    same(got, [(b"k", b"v", (("a", b"1"), ("a", b"2"))), (b"k", None, ()), (None, b"", ())], "records")


async def large_batch():
    topic = await make("large")
    sent = [str(i) + "x" * 900 for i in range(3000)]
    await send(topic, sent, max_batch_size=900_000, linger_ms=200)
    assert values(await read(topic, 3000)) == sent, "3000 records of 900 bytes"


async def offsets():
    topic = await make("offsets")
    first = TopicPartition(topic, 0)

    async def body(producer):
        for i in range(10):
            await producer.send_and_wait(topic, f"v{i}".encode(), partition=0, timestamp_ms=1000 * (i + 1))

    await with_producer(body)

    async def from_offset():
        same(values(await read(topic, 3, 7)), ["v7", "v8", "v9"], "values")

    async def from_time():
        found = await with_consumer([], lambda consumer: consumer.offsets_for_times({first: 4500}))
        same(found[first].offset, 4, "offset of 4500")
        same(values(await read(topic, 1, 4)), ["v4"], "value there")

    async def listed():
        async def ends(consumer):
            return (await consumer.beginning_offsets([first]))[first], (await consumer.end_offsets([first]))[first]

        same(await with_consumer([], ends), (0, 10), "ends")

    await behaviour("consume from an offset", from_offset)
    await behaviour("consume from a time", from_time)
    await behaviour("list offsets", listed)


async def classic_group():
    topic, group = await make("group", 4), f"{RUN}-classic"
    seen = set()

    async def two_members():
        async def both(a):
            async def body(b):
                async def read_both():
                    for each in (a, b):
                        seen.update((r.partition, r.offset) for r in await poll(each, 50, 0.2))
                    return [len(each.assignment()) for each in (a, b)]

                end = time.time() + 30
                while await read_both() != [2, 2]:
                    assert time.time() < end, "not in time: two partitions each"
                await send(topic, numbered(400))
                while len(seen) < 400:
                    await read_both()
                    assert time.time() < end + 30, f"not in time: all read, {len(seen)}"
                await a.commit()
                await b.commit()

            await with_consumer([topic], body, group_id=group)

        await with_consumer([topic], both, group_id=group)

    async def resume():
        await send(topic, numbered(100))

        async def body(consumer):
            got = {(r.partition, r.offset) for r in await poll(consumer, 100)}
            same((len(got), len(got & seen)), (100, 0), "records after the commits, of these seen before")
            await consumer.commit()

        await with_consumer([topic], body, group_id=group)

    async def committed():
        got = await admin.list_consumer_group_offsets(group)
        same(sum(each.offset for each in got.values()), 500, "sum of all")

    await behaviour("group: two members", two_members)
    await behaviour("group: resume", resume)
    await behaviour("committed offsets", committed)


async def committed_values(topic, count):
    return values(await read(topic, count, isolation_level="read_committed"))


async def txn_commit():
    topic = await make("txn-commit")

    async def body(producer):
        for i in range(3):
            async with producer.transaction():
                for _ in range(10):
                    await producer.send(topic, f"c{i}".encode())

    await with_producer(body, transactional_id=f"{RUN}-commit")
    same(len(await committed_values(topic, 30)), 30, "records")


async def txn_abort():
    topic = await make("txn-abort")

    async def body(producer):
        for value, commit in [("a", True), ("b", False), ("c", False), ("d", True)]:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, value.encode())
            await (producer.commit_transaction() if commit else producer.abort_transaction())

    await with_producer(body, transactional_id=f"{RUN}-abort")
    same(await committed_values(topic, 2), ["a", "d"], "read_committed")
    same(values(await read(topic, 4)), ["a", "b", "c", "d"], "all")


async def txn_isolation():
    topic = await make("txn-open")

    async def body(producer):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"open")
        await send(topic, ["v0", "v1"])

        async def reader(consumer):
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            same(len(await poll(consumer, 1, 1.5)), 0, "seen before the end")
            same(len(await read(topic, 3)), 3, "seen by others")
            await producer.commit_transaction()
            same(values(await poll(consumer, 3)), ["open", "v0", "v1"], "seen after it")

        await with_consumer([], reader, isolation_level="read_committed")

    await with_producer(body, transactional_id=f"{RUN}-open")


async def txn_fencing():
    topic = await make("txn-fence")

    async def old(producer):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"old")

        async def young(other):
            async with other.transaction():
                await other.send_and_wait(topic, b"new")

        await with_producer(young, transactional_id=f"{RUN}-fence")
        try:
            await producer.commit_transaction()
        except ProducerFenced:
            return
        raise AssertionError("the old producer could commit")

    await with_producer(old, transactional_id=f"{RUN}-fence")
    same(await committed_values(topic, 1), ["new"], "committed")


async def txn_transform():
    source, target, group = await make("txn-in"), await make("txn-out"), f"{RUN}-transform"
    await send(source, numbered(6))
    for commit in [False, True, True]:

        async def body(producer):
            async def consume(consumer):
                got = await poll(consumer, 3)
                await producer.begin_transaction()
                for each in got:
                    await producer.send(target, each.value + b"!")
                await producer.send_offsets_to_transaction({TopicPartition(source, 0): got[-1].offset + 1}, group)
                await (producer.commit_transaction() if commit else producer.abort_transaction())

            await with_consumer([source], consume, group_id=group, isolation_level="read_committed")

        await with_producer(body, transactional_id=f"{RUN}-transform")
    same(await committed_values(target, 6), [f"v{i}!" for i in range(6)], "output")
    got = await admin.list_consumer_group_offsets(group)
    same(got[TopicPartition(source, 0)].offset, 6, "committed offset")


async def admin_cluster():
    seen = await admin.describe_cluster()
    same(len(seen["brokers"]), 1, "brokers")


async def admin_topics():
    topic = await make("admin-topics", 2)
    again = await admin.create_topics([NewTopic(topic, 2, 1)])
    same(again.topic_errors[0][1], TopicAlreadyExistsError.errno, "error code")
    await admin.delete_topics([topic])
    assert topic not in await admin.list_topics()


async def admin_partitions():
    topic = await make("admin-partitions", 2)
    await admin.create_partitions({topic: NewPartitions(5)})
    [described] = await admin.describe_topics([topic])
    same(len(described["partitions"]), 5, "partitions")


async def admin_configs():
    topic = await make("admin-configs")
    kind = ConfigResourceType.TOPIC
    await admin.alter_configs([ConfigResource(kind, topic, configs={"retention.ms": "7200000"})])
    [shown] = await admin.describe_configs([ConfigResource(kind, topic)])
    found = {row[0]: row[1] for row in shown.resources[0][4]}
    same((found["retention.ms"], found["cleanup.policy"]), ("7200000", "delete"), "configs")


async def admin_delete_records():
    topic = await make("admin-records")
    await send(topic, numbered(10))
    first = TopicPartition(topic, 0)
    same((await admin.delete_records({first: RecordsToDelete(4)}))[first], 4, "low watermark")


async def admin_groups():
    topic, group = await make("admin-groups"), f"{RUN}-admin-group"
    await send(topic, numbered(10))

    async def body(consumer):
        same(len(await poll(consumer, 10)), 10, "records")
        await consumer.commit()
        [described] = await admin.describe_consumer_groups([group])
        same(len(described.groups[0][5]), 1, "members")

    await with_consumer([topic], body, group_id=group)
    assert group in [each[0] for each in await admin.list_consumer_groups()]


async def main():
    global admin
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    await behaviour("metadata", metadata)
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
        kind = None if codec == "none" else codec
        await behaviour(f"produce {codec}", lambda: produce_and_read(codec, compression_type=kind))
    for acks in [0, 1, "all"]:
        await behaviour(f"acks {acks}", lambda: produce_and_read(f"acks-{acks}", acks=acks))
    await behaviour("keys, headers, nulls", shapes)
    await behaviour("large batch", large_batch)
    await behaviour("idempotent producer", lambda: produce_and_read("idempotent", enable_idempotence=True))
    await offsets()
    await classic_group()
    await behaviour("txn: commit", txn_commit)
    await behaviour("txn: abort", txn_abort)
    await behaviour("txn: read_committed", txn_isolation)
    await behaviour("txn: fencing", txn_fencing)
    await behaviour("txn: consume-transform-produce", txn_transform)
    await behaviour("admin: cluster", admin_cluster)
    await behaviour("admin: topics", admin_topics)
    await behaviour("admin: partitions", admin_partitions)
    await behaviour("admin: configs", admin_configs)
    await behaviour("admin: delete records", admin_delete_records)
    await behaviour("admin: groups", admin_groups)
    await admin.close()
    skip("not in this client", "group: KIP-848")
    skip(
        "not in its admin client",
        "admin: delete offsets",
        "admin: describe producers",
        "admin: describe transactions",
        "admin: quotas",
        "admin: log dirs",
    )


print(f"version\t{aiokafka.__version__}")
asyncio.run(main())
