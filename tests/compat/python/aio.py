"""The main flows of aiokafka (a client of its own, not librdkafka) against one broker. Fails at the first wrong one."""
import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

BOOTSTRAP = sys.argv[1]
RECORDS = 200
TOPIC = f"aio-{time.time_ns()}"
GROUP = f"group-{TOPIC}"
passed = 0


def check(what, holds):
    global passed
    if not holds:
        print(f"not ok {what}")
        print(f"{passed} passed, 1 failed")
        sys.exit(1)
    passed += 1
    print(f"ok {what}")


async def produce(acks, idempotent, codec):
    config = {"acks": acks, "enable_idempotence": idempotent, "compression_type": codec}
    producer = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, **config)
    await producer.start()
    try:
        for i in range(RECORDS):
            value = None if i % 10 == 0 else f"{codec} {i}".encode()
            await producer.send(TOPIC, value, key=str(i).encode(), headers=[("h", b"1")])
        await producer.flush()
    finally:
        await producer.stop()
    check(f"produce {codec} acks={acks}", True)


def consumer(**config):
    config = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False, **config}
    return AIOKafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, **config)


async def read(member, count):
    seen = []
    while len(seen) < count:
        for batch in (await member.getmany(timeout_ms=20_000, max_records=count - len(seen))).values():
            seen.extend(batch)
    return seen


async def main():
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, 2, 1)])
    check("create_topics", TOPIC in await admin.list_topics())
    for acks, idempotent, codec in [("all", True, None), (1, False, "gzip"), (0, False, None)]:
        await produce(acks, idempotent, codec)
    total = 3 * RECORDS
    first = consumer()
    await first.start()
    seen = await read(first, total // 2)
    await first.commit()
    await first.stop()
    second = consumer()
    await second.start()
    seen += await read(second, total - total // 2)
    await second.commit()
    offsets = {(record.partition, record.offset) for record in seen}
    check("two members in turn read each record once", len(offsets) == len(seen) == total)
    check("null values and headers", sum(r.value is None for r in seen) == total // 10 and seen[0].headers == (("h", b"1"),))
    partition = TopicPartition(TOPIC, 0)
    times = await second.offsets_for_times({partition: 1})
    check("offsets_for_times", times[partition].offset == 0)
    ends = await second.end_offsets([partition, TopicPartition(TOPIC, 1)])
    check("end_offsets", sum(ends.values()) == total)
    await second.stop()
    committed = await admin.list_consumer_group_offsets(GROUP)
    check("committed offsets", sum(each.offset for each in committed.values()) == total)
    await admin.delete_topics([TOPIC])
    check("delete_topics", TOPIC not in await admin.list_topics())
    await admin.close()


asyncio.run(asyncio.wait_for(main(), 120))
print(f"{passed} passed, 0 failed")
