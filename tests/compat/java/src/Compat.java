import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** The behaviours of the matrix, with Kafka's own client against one broker. */
public final class Compat {
  private final Clients clients;
  private final Admin admin;
  private final String run = "java-" + System.nanoTime();

  private Compat(Clients clients, Admin admin) {
    this.clients = clients;
    this.admin = admin;
  }

  private String topic(String name, int partitions) throws Exception {
    String topic = run + "-" + name;
    admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    return topic;
  }

  private void produceAndRead(String name, Map<String, Object> config) throws Exception {
    String topic = topic(name, 1);
    clients.send(topic, config, Clients.RECORDS);
    List<ConsumerRecord<String, String>> got = clients.read(topic, 0, Clients.RECORDS, "read_uncommitted");
    Behaviours.same(Clients.values(got), Clients.numbered(Clients.RECORDS), "values");
  }

  private void shapes() throws Exception {
    String topic = topic("shapes", 1);
    try (KafkaProducer<String, String> producer = clients.producer(Map.of())) {
      ProducerRecord<String, String> whole = new ProducerRecord<>(topic, "k", "v");
      whole.headers().add("a", "1".getBytes()).add("a", "2".getBytes()).add("n", null);
      producer.send(whole).get();
      producer.send(new ProducerRecord<>(topic, "k", null)).get();
      producer.send(new ProducerRecord<>(topic, null, "")).get();
    }
    StringBuilder got = new StringBuilder();
    for (ConsumerRecord<String, String> each : clients.read(topic, 0, 3, "read_uncommitted")) {
      got.append(each.key()).append('=').append(each.value());
      each.headers().forEach(h -> got.append(' ').append(h.key()).append(h.value() == null ? "-" : new String(h.value())));
      got.append(';');
    }
    Behaviours.same(got.toString(), "k=v a1 a2 n-;k=null;null=;", "records");
  }

  private void largeBatch() throws Exception {
    String topic = topic("large", 1);
    String filler = "x".repeat(900);
    try (KafkaProducer<String, String> producer = clients.producer(Map.of("batch.size", 900_000, "linger.ms", 500))) {
      for (int i = 0; i < 3000; i++) producer.send(new ProducerRecord<>(topic, i + filler));
    }
    List<String> got = Clients.values(clients.read(topic, 0, 3000, "read_uncommitted"));
    Behaviours.same(got.size(), 3000, "records");
    for (int i = 0; i < 3000; i++) Behaviours.same(got.get(i), i + filler, "record " + i);
    String record = "y".repeat(1_000_000);
    clients.producer(Map.of()).send(new ProducerRecord<>(topic, record)).get();
    Behaviours.same(Clients.values(clients.read(topic, 3000, 1, "read_uncommitted")), List.of(record), "a record of 1 MB");
  }

  private void offsets() throws Exception {
    String topic = topic("offsets", 1);
    TopicPartition first = new TopicPartition(topic, 0);
    try (KafkaProducer<String, String> producer = clients.producer(Map.of())) {
      for (long i = 0; i < 10; i++) producer.send(new ProducerRecord<>(topic, 0, 1000 * (i + 1), "k", "v" + i)).get();
    }
    Behaviours.behaviour("consume from an offset", () ->
        Behaviours.same(Clients.values(clients.read(topic, 7, 3, "read_uncommitted")), List.of("v7", "v8", "v9"), "values"));
    Behaviours.behaviour("consume from a time", () -> {
      try (KafkaConsumer<String, String> consumer = clients.consumer(Map.of())) {
        long at = consumer.offsetsForTimes(Map.of(first, 4500L)).get(first).offset();
        Behaviours.same(at, 4L, "offset of 4500");
        Behaviours.same(consumer.offsetsForTimes(Map.of(first, 99_000L)).get(first), "none", "past the end");
      } catch (AssertionError error) {
        if (!String.valueOf(error.getMessage()).endsWith("got null")) throw error;
      }
      Behaviours.same(clients.read(topic, 4, 6, "read_uncommitted").get(0).timestamp(), 5000L, "time of offset 4");
    });
    Behaviours.behaviour("list offsets", () -> {
      Map<String, OffsetSpec> specs = Map.of("0", OffsetSpec.earliest(), "10", OffsetSpec.latest(),
          "4", OffsetSpec.forTimestamp(4001), "9", OffsetSpec.maxTimestamp());
      for (Map.Entry<String, OffsetSpec> each : specs.entrySet()) {
        long got = admin.listOffsets(Map.of(first, each.getValue())).partitionResult(first).get().offset();
        Behaviours.same(String.valueOf(got), each.getKey(), each.getValue().getClass().getSimpleName());
      }
    });
  }

  private Map<String, Object> member(String group) {
    return Map.of("group.id", group, "heartbeat.interval.ms", 300, "session.timeout.ms", 10_000,
        "partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
  }

  private void classicGroup() throws Exception {
    String topic = topic("group", 4);
    String group = run + "-classic";
    Set<String> seen = new HashSet<>();
    Behaviours.behaviour("group: two members", () -> {
      try (KafkaConsumer<String, String> a = clients.consumer(member(group));
          KafkaConsumer<String, String> b = clients.consumer(member(group))) {
        a.subscribe(List.of(topic));
        b.subscribe(List.of(topic));
        List<KafkaConsumer<String, String>> both = List.of(a, b);
        Callable<Integer> poll = () -> {
          for (KafkaConsumer<String, String> each : both) {
            each.poll(Duration.ofMillis(50)).forEach(r -> seen.add(r.partition() + "/" + r.offset()));
          }
          return seen.size();
        };
        Behaviours.until("two partitions each",
            () -> poll.call() == 0 && a.assignment().size() == 2 && b.assignment().size() == 2);
        clients.send(topic, Map.of(), 400);
        Behaviours.until("all read", () -> poll.call() == 400);
        a.commitSync();
        b.commitSync();
      }
    });
    clients.send(topic, Map.of(), 100);
    Behaviours.behaviour("group: resume", () -> {
      try (KafkaConsumer<String, String> c = clients.consumer(member(group))) {
        c.subscribe(List.of(topic));
        List<ConsumerRecord<String, String>> got = Clients.poll(c, 100, 30_000);
        Behaviours.same(got.size(), 100, "records after the commits");
        for (ConsumerRecord<String, String> each : got) {
          Behaviours.holds(seen.add(each.partition() + "/" + each.offset()), "read twice: " + each.offset());
        }
        c.commitSync();
      }
    });
    Behaviours.behaviour("committed offsets", () -> {
      long sum = 0;
      Map<TopicPartition, OffsetAndMetadata> all =
          admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
      for (OffsetAndMetadata each : all.values()) sum += each.offset();
      Behaviours.same(sum, 500L, "sum of all");
      TopicPartition first = new TopicPartition(topic, 0);
      admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(3, "note"))).all().get();
      OffsetAndMetadata set = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(first);
      Behaviours.same(set.offset() + set.metadata(), "3note", "after it was set");
    });
  }

  private void producing() {
    for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
      Behaviours.behaviour("produce " + codec, () -> produceAndRead(codec, Map.of("compression.type", codec)));
    }
    for (String acks : List.of("0", "1", "all")) {
      Map<String, Object> config = new HashMap<>(Map.of("acks", acks, "enable.idempotence", false));
      Behaviours.behaviour("acks " + acks, () -> produceAndRead("acks-" + acks, config));
    }
    Behaviours.behaviour("keys, headers, nulls", this::shapes);
    Behaviours.behaviour("large batch", this::largeBatch);
    Map<String, Object> idempotent = Map.of("enable.idempotence", true, "compression.type", "lz4", "batch.size", 500);
    Behaviours.behaviour("idempotent producer", () -> produceAndRead("idempotent", idempotent));
  }

  public static void main(String[] args) throws Exception {
    System.out.println("version\t" + System.getProperty("skerry.version"));
    Clients clients = new Clients(args[0]);
    try (Admin admin = Admin.create(clients.with(Map.of()))) {
      Compat compat = new Compat(clients, admin);
      Behaviours.behaviour("metadata", () -> {
        String topic = compat.topic("metadata", 3);
        var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        Behaviours.same(described.partitions().size(), 3, "partitions");
        Behaviours.holds(described.partitions().get(0).leader() != null, "a leader");
        Behaviours.holds(admin.listTopics().names().get().contains(topic), "listed");
      });
      compat.producing();
      compat.offsets();
      compat.classicGroup();
      Behaviours.behaviour("group: KIP-848", () -> ConsumerGroups.run(clients.bootstrap));
      new Transactions(clients, admin, compat.run).run();
      new Administration(clients, admin, compat.run).run();
    }
    // Clients that a failed behaviour has left open would keep the process.
    System.exit(0);
  }
}
