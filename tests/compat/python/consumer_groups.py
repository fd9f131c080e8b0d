"""confluent-kafka (librdkafka 2.12 and later) with group.protocol=consumer (KIP-848) against one broker."""
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

TOPIC = f"kip848-python-{time.time_ns()}"
GROUP = f"group-{TOPIC}"


def check(what, holds):
    assert holds, what


def consumer(bootstrap, group, topics, **more):
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    made.subscribe(topics)
    return made


seen = set()


def until(what, consumers, holds):
    end = time.time() + 60
    while not holds() and time.time() < end:
        for each in consumers:
            message = each.poll(0.05)
            if message is not None and not message.error():
                seen.add((message.partition(), message.offset()))
    check(what, holds())


def count(each):
    return len(each.assignment())


def run(bootstrap):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(TOPIC, 6, 1)]).values():
        future.result(20)
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(100):
        producer.produce(TOPIC, key=str(i), value=str(i))
    producer.flush(30)

    a = consumer(bootstrap, GROUP, [TOPIC])
    until("one member consumes all", [a], lambda: len(seen) == 100 and count(a) == 6)
    a.commit(asynchronous=False)
    b = consumer(bootstrap, GROUP, [TOPIC], group_remote_assignor="range")
    until("two members share", [a, b], lambda: count(a) == 3 and count(b) == 3)
    check("no partition has two owners", len({p.partition for p in a.assignment() + b.assignment()}) == 6)
    for future in admin.create_partitions([NewPartitions(TOPIC, 8)]).values():
        future.result(20)
    until("new partitions are assigned", [a, b], lambda: count(a) + count(b) == 8)
    a.close()
    until("who stays takes over", [b], lambda: count(b) == 8)
    b.close()
    again = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    committed = again.committed([TopicPartition(TOPIC, p) for p in range(8)], 10)
    check("all is committed", sum(max(0, each.offset) for each in committed) == 100)
    again.close()

    c = consumer(bootstrap, f"{GROUP}-static", [TOPIC], group_instance_id="i")
    until("a static member joins", [c], lambda: count(c) == 8)
    c.close()
    d = consumer(bootstrap, f"{GROUP}-static", [TOPIC], group_instance_id="i")
    until("and takes its place again", [d], lambda: count(d) == 8)
    d.close()

    e = consumer(bootstrap, f"{GROUP}-regex", [f"^{TOPIC}.*"])
    until("the broker matches a pattern", [e], lambda: count(e) == 8)
    for future in admin.create_topics([NewTopic(f"{TOPIC}-more", 2, 1)]).values():
        future.result(20)
    until("and finds a topic that comes later", [e], lambda: count(e) == 10)
    e.close()
    for future in admin.delete_topics([TOPIC, f"{TOPIC}-more"]).values():
        future.result(20)
