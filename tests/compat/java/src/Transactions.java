import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions: what others see of them, who may go on, and offsets that belong to them. */
final class Transactions {
  private final Clients clients;
  private final Admin admin;
  private final String run;
  private String topic;

  Transactions(Clients clients, Admin admin, String run) {
    this.clients = clients;
    this.admin = admin;
    this.run = run;
  }

  private String topic(String name) throws Exception {
    String made = run + "-txn-" + name;
    admin.createTopics(List.of(new NewTopic(made, 1, (short) 1))).all().get();
    return made;
  }

  private List<String> committed(String topic, int count) {
    return Clients.values(clients.read(topic, 0, count, "read_committed"));
  }

  private void commit() throws Exception {
    topic = topic("all");
    try (KafkaProducer<String, String> producer = clients.transactional(run + "-txn")) {
      for (int i = 0; i < 3; i++) {
        producer.beginTransaction();
        for (int j = 0; j < 10; j++) producer.send(new ProducerRecord<>(topic, "c" + i));
        producer.commitTransaction();
      }
    }
    Behaviours.same(committed(topic, 30).size(), 30, "records");
  }

  private void abort() throws Exception {
    String topic = topic("abort");
    try (KafkaProducer<String, String> producer = clients.transactional(run + "-abort")) {
      for (String value : List.of("a", "b", "c", "d")) {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(topic, value)).get();
        if (value.equals("b") || value.equals("c")) producer.abortTransaction();
        else producer.commitTransaction();
      }
    }
    Behaviours.same(committed(topic, 2), List.of("a", "d"), "read_committed");
    Behaviours.same(Clients.values(clients.read(topic, 0, 4, "read_uncommitted")), List.of("a", "b", "c", "d"), "all");
  }

  /** What is open holds back whatever comes behind it, and only for readers that ask for it. */
  private void isolation() throws Exception {
    String topic = topic("open");
    TopicPartition first = new TopicPartition(topic, 0);
    try (KafkaProducer<String, String> producer = clients.transactional(run + "-open");
        KafkaConsumer<String, String> reader = clients.consumer(Map.of("isolation.level", "read_committed"))) {
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(topic, "open")).get();
      clients.send(topic, Map.of(), 2);
      reader.assign(List.of(first));
      reader.seekToBeginning(List.of(first));
      Behaviours.same(Clients.poll(reader, 1, 1500).size(), 0, "seen before the end");
      Behaviours.same(reader.endOffsets(List.of(first)).get(first), 0L, "last stable offset");
      Behaviours.same(clients.read(topic, 0, 3, "read_uncommitted").size(), 3, "seen by others");
      producer.commitTransaction();
      Behaviours.same(Clients.values(Clients.poll(reader, 3, 30_000)), List.of("open", "v0", "v1"), "seen after it");
    }
  }

  private void fencing() throws Exception {
    String topic = topic("fence");
    KafkaProducer<String, String> old = clients.transactional(run + "-fence");
    old.beginTransaction();
    old.send(new ProducerRecord<>(topic, "old")).get();
    try (KafkaProducer<String, String> young = clients.transactional(run + "-fence")) {
      young.beginTransaction();
      young.send(new ProducerRecord<>(topic, "new"));
      young.commitTransaction();
    }
    try {
      old.commitTransaction();
      throw new AssertionError("the old producer could commit");
    } catch (ProducerFencedException | InvalidProducerEpochException expected) {
      Behaviours.same(committed(topic, 1), List.of("new"), "committed");
    } finally {
      old.close();
    }
  }

  private void transform() throws Exception {
    String in = topic("in");
    String out = topic("out");
    String group = run + "-transform";
    clients.send(in, Map.of(), 6);
    Map<String, Object> config = Map.of("group.id", group, "isolation.level", "read_committed", "max.poll.records", 3);
    for (boolean isCommit : new boolean[] {false, true, true}) {
      try (KafkaConsumer<String, String> consumer = clients.consumer(config);
          KafkaProducer<String, String> producer = clients.transactional(group)) {
        consumer.subscribe(List.of(in));
        List<ConsumerRecord<String, String>> got = Clients.poll(consumer, 1, 30_000);
        Behaviours.same(got.size(), 3, "records of a poll");
        producer.beginTransaction();
        for (ConsumerRecord<String, String> each : got) producer.send(new ProducerRecord<>(out, each.value() + "!"));
        long next = got.get(got.size() - 1).offset() + 1;
        producer.sendOffsetsToTransaction(
            Map.of(new TopicPartition(in, 0), new OffsetAndMetadata(next)), consumer.groupMetadata());
        if (isCommit) producer.commitTransaction();
        else producer.abortTransaction();
      }
    }
    Behaviours.same(committed(out, 6), List.of("v0!", "v1!", "v2!", "v3!", "v4!", "v5!"), "output");
    TopicPartition first = new TopicPartition(in, 0);
    long offset = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(first).offset();
    Behaviours.same(offset, 6L, "committed offset");
  }

  void run() {
    Behaviours.behaviour("txn: commit", this::commit);
    Behaviours.behaviour("txn: abort", this::abort);
    Behaviours.behaviour("txn: read_committed", this::isolation);
    Behaviours.behaviour("txn: fencing", this::fencing);
    Behaviours.behaviour("txn: consume-transform-produce", this::transform);
  }
}
