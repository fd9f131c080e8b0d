"""The main flows of confluent-kafka (librdkafka) against one broker. Fails at the first wrong one."""
import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

BOOTSTRAP = sys.argv[1]
RECORDS = 500
TOPIC = f"python-{time.time_ns()}"
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


def topics():
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    for future in admin.create_topics([NewTopic(TOPIC, 3, 1)]).values():
        future.result(20)
    check("create_topics", len(admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions) == 3)
    try:
        for future in admin.create_topics([NewTopic(TOPIC, 3, 1)]).values():
            future.result(20)
        check("create_topics again", False)
    except KafkaException as error:
        check("create_topics again", error.args[0].name() == "TOPIC_ALREADY_EXISTS")
    for future in admin.describe_configs([ConfigResource("topic", TOPIC)]).values():
        check("describe_configs", future.result(20)["cleanup.policy"].value == "delete")
    return admin


def produce(codec, acks, idempotent):
    config = {"bootstrap.servers": BOOTSTRAP, "compression.type": codec, "acks": acks}
    producer = Producer({**config, "enable.idempotence": idempotent})
    errors = []
    for i in range(RECORDS):
        value = None if i % 10 == 0 else f"{codec} {i}"
        producer.produce(
            TOPIC,
            key=str(i),
            value=value,
            headers={"codec": codec},
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
    check(f"produce {codec} acks={acks}", producer.flush(30) == 0 and not errors)


def consume(expected):
    config = {"bootstrap.servers": BOOTSTRAP, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    seen = set()
    end = time.time() + 60
    while len(seen) < expected and time.time() < end:
        message = consumer.poll(1)
        if message is not None and not message.error():
            seen.add((message.partition(), message.offset()))
    check("consume in a group", len(seen) == expected)
    consumer.commit(asynchronous=False)
    consumer.close()
    again = Consumer(config)
    partitions = [TopicPartition(TOPIC, partition) for partition in range(3)]
    check("committed", sum(each.offset for each in again.committed(partitions, 10)) == expected)
    times = again.offsets_for_times([TopicPartition(TOPIC, 0, 1)], 10)
    check("offsets_for_times", times[0].offset == 0)
    again.close()


admin = topics()
for codec, acks, idempotent in [
    ("none", "all", True),
    ("gzip", 1, False),
    ("snappy", "all", True),
    ("lz4", 0, False),
    ("zstd", "all", True),
]:
    produce(codec, acks, idempotent)
consume(5 * RECORDS)
for future in admin.delete_topics([TOPIC]).values():
    future.result(20)
check("delete_topics", TOPIC not in admin.list_topics(timeout=10).topics)
print(f"{passed} passed, 0 failed")
