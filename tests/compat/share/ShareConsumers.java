import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * KafkaShareConsumer (KIP-932) against one broker. Usage: ShareConsumers BOOTSTRAP, then ShareConsumers BOOTSTRAP RUN once
 * the broker was killed and started again: what the first has left is gone on with.
 */
public final class ShareConsumers {
  private final String bootstrap;
  private final Admin admin;
  private final String run;

  private ShareConsumers(String bootstrap, Admin admin, String run) {
    this.bootstrap = bootstrap;
    this.admin = admin;
    this.run = run;
  }

  private KafkaShareConsumer<String, String> consumer(String group, boolean explicit) {
    Map<String, Object> config = new HashMap<>(Map.of(
        "bootstrap.servers", bootstrap,
        "group.id", group,
        "key.deserializer", StringDeserializer.class,
        "value.deserializer", StringDeserializer.class));
    if (explicit) config.put("share.acknowledgement.mode", "explicit");
    return new KafkaShareConsumer<>(config);
  }

  private void set(String group, String name, String value) throws Exception {
    ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
    AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
  }

  /** A topic, and a group that begins at its start. */
  private String begin(String name, int partitions) throws Exception {
    String topic = run + "-" + name;
    admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    set(topic, "share.auto.offset.reset", "earliest");
    return topic;
  }

  private void send(String topic, int from, int to) throws Exception {
    Map<String, Object> config = Map.of("bootstrap.servers", bootstrap,
        "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class);
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      for (int i = from; i < to; i++) producer.send(new ProducerRecord<>(topic, "k" + i, "v" + i)).get();
    }
  }

  private static Set<String> numbered(int from, int to) {
    return IntStream.range(from, to).mapToObj(i -> "v" + i).collect(Collectors.toCollection(TreeSet::new));
  }

  private void twoConsumers() throws Exception {
    String topic = begin("two", 1);
    Map<String, Integer> seen = new TreeMap<>();
    Map<Integer, Integer> byConsumer = new TreeMap<>();
    try (KafkaShareConsumer<String, String> a = consumer(topic, false);
        KafkaShareConsumer<String, String> b = consumer(topic, false)) {
      List<KafkaShareConsumer<String, String>> both = List.of(a, b);
      for (KafkaShareConsumer<String, String> each : both) each.subscribe(List.of(topic));
      int[] sent = {0};
      Behaviours.until("both have read", () -> {
        send(topic, sent[0], sent[0] + 20);
        sent[0] += 20;
        for (int i = 0; i < 2; i++) {
          ConsumerRecords<String, String> got = both.get(i).poll(Duration.ofMillis(200));
          for (ConsumerRecord<String, String> record : got) seen.merge(record.value(), 1, Integer::sum);
          byConsumer.merge(i, got.count(), Integer::sum);
        }
        return byConsumer.get(0) > 0 && byConsumer.get(1) > 0;
      });
      Behaviours.until("all is read", () -> {
        for (KafkaShareConsumer<String, String> each : both) {
          for (ConsumerRecord<String, String> record : each.poll(Duration.ofMillis(200))) seen.merge(record.value(), 1, Integer::sum);
        }
        return seen.size() == sent[0];
      });
      Behaviours.same(Set.copyOf(seen.values()), Set.of(1), "how often a record was read");
      Behaviours.same(admin.describeShareGroups(List.of(topic)).all().get().get(topic).members().size(), 2, "members");
    }
  }

  /** Reads until it has so many records, with what the acknowledgement of each is to be. */
  private List<ConsumerRecord<String, String>> read(KafkaShareConsumer<String, String> consumer, int count) throws Exception {
    List<ConsumerRecord<String, String>> all = new ArrayList<>();
    Behaviours.until(count + " records", () -> {
      consumer.poll(Duration.ofMillis(200)).forEach(all::add);
      return all.size() >= count;
    });
    return all;
  }

  private void acknowledgements() throws Exception {
    String topic = begin("ack", 1);
    send(topic, 0, 6);
    try (KafkaShareConsumer<String, String> consumer = consumer(topic, true)) {
      consumer.subscribe(List.of(topic));
      for (ConsumerRecord<String, String> record : read(consumer, 6)) {
        AcknowledgeType type = switch ((int) record.offset()) {
          case 1, 4 -> AcknowledgeType.RELEASE;
          case 2 -> AcknowledgeType.REJECT;
          default -> AcknowledgeType.ACCEPT;
        };
        consumer.acknowledge(record, type);
      }
      consumer.commitSync().values().forEach(error -> Behaviours.holds(error.isEmpty(), String.valueOf(error)));
      List<ConsumerRecord<String, String>> again = read(consumer, 2);
      Behaviours.same(again.stream().map(ConsumerRecord::value).toList(), List.of("v1", "v4"), "what was released");
      for (ConsumerRecord<String, String> record : again) {
        Behaviours.same((int) record.deliveryCount().get(), 2, "deliveries");
        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
      }
      consumer.commitSync();
      Behaviours.same(consumer.poll(Duration.ofMillis(500)).count(), 0, "records that are left");
    }
  }

  private void deliveryCount() throws Exception {
    String topic = begin("count", 1);
    send(topic, 0, 1);
    try (KafkaShareConsumer<String, String> consumer = consumer(topic, true)) {
      consumer.subscribe(List.of(topic));
      for (int delivery = 1; delivery <= 5; delivery++) {
        ConsumerRecord<String, String> record = read(consumer, 1).get(0);
        Behaviours.same((int) record.deliveryCount().get(), delivery, "deliveries");
        consumer.acknowledge(record, AcknowledgeType.RELEASE);
        consumer.commitSync();
      }
      Behaviours.same(consumer.poll(Duration.ofMillis(500)).count(), 0, "deliveries after the fifth");
    }
  }

  /** A consumer that goes without a word of its records: they are another one's at once. */
  private void takeover() throws Exception {
    String topic = begin("gone", 1);
    send(topic, 0, 10);
    try (KafkaShareConsumer<String, String> first = consumer(topic, true)) {
      first.subscribe(List.of(topic));
      Behaviours.same(read(first, 10).size(), 10, "records");
    }
    try (KafkaShareConsumer<String, String> second = consumer(topic, false)) {
      second.subscribe(List.of(topic));
      List<ConsumerRecord<String, String>> got = read(second, 10);
      Behaviours.same(got.stream().map(ConsumerRecord::value).collect(Collectors.toCollection(TreeSet::new)), numbered(0, 10), "values");
      Behaviours.same((int) got.get(0).deliveryCount().get(), 2, "deliveries");
      second.commitSync();
    }
  }

  private SharePartitionOffsetInfo offset(String group) throws Exception {
    Map<String, ListShareGroupOffsetsSpec> all = Map.of(group, new ListShareGroupOffsetsSpec());
    return admin.listShareGroupOffsets(all).partitionsToOffsetInfo(group).get().get(new TopicPartition(group, 0));
  }

  private void administration() throws Exception {
    String topic = begin("admin", 1);
    send(topic, 0, 10);
    TopicPartition first = new TopicPartition(topic, 0);
    try (KafkaShareConsumer<String, String> consumer = consumer(topic, false)) {
      consumer.subscribe(List.of(topic));
      read(consumer, 10);
      consumer.commitSync();
    }
    Behaviours.until("all is done", () -> offset(topic).lag().orElse(-1L) == 0);
    Behaviours.until("nobody is in it", () -> admin.describeShareGroups(List.of(topic)).all().get().get(topic).members().isEmpty());
    admin.alterShareGroupOffsets(topic, Map.of(first, 7L)).all().get();
    Behaviours.same(offset(topic).startOffset(), 7L, "start");
    try (KafkaShareConsumer<String, String> consumer = consumer(topic, false)) {
      consumer.subscribe(List.of(topic));
      List<String> got = read(consumer, 3).stream().map(ConsumerRecord::value).toList();
      Behaviours.same(got, List.of("v7", "v8", "v9"), "values");
      consumer.commitSync();
    }
    Behaviours.until("nobody is in it", () -> admin.describeShareGroups(List.of(topic)).all().get().get(topic).members().isEmpty());
    admin.deleteShareGroupOffsets(topic, Set.of(topic)).all().get();
    admin.deleteShareGroups(List.of(topic)).all().get();
    boolean isListed = admin.listGroups().all().get().stream().anyMatch(group -> group.groupId().equals(topic));
    Behaviours.holds(!isListed, "the group is still listed");
  }

  /** Of ten records four are done when the broker is killed; all is acknowledged, nothing is read for good. */
  private void beforeTheKill() throws Exception {
    String topic = begin("kill", 1);
    send(topic, 0, 10);
    try (KafkaShareConsumer<String, String> consumer = consumer(topic, true)) {
      consumer.subscribe(List.of(topic));
      for (ConsumerRecord<String, String> record : read(consumer, 10)) {
        boolean isDone = Set.of(0L, 1L, 5L, 8L).contains(record.offset());
        consumer.acknowledge(record, isDone ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
      }
      consumer.commitSync();
    }
  }

  private void afterTheKill() throws Exception {
    String topic = run + "-kill";
    try (KafkaShareConsumer<String, String> consumer = consumer(topic, false)) {
      consumer.subscribe(List.of(topic));
      List<ConsumerRecord<String, String>> got = read(consumer, 6);
      Behaviours.same(got.stream().map(ConsumerRecord::value).toList(), List.of("v2", "v3", "v4", "v6", "v7", "v9"), "values");
      Behaviours.same((int) got.get(0).deliveryCount().get(), 2, "deliveries");
      consumer.commitSync();
      Behaviours.same(consumer.poll(Duration.ofMillis(500)).count(), 0, "records that are left");
    }
  }

  public static void main(String[] args) throws Exception {
    String run = args.length > 1 ? args[1] : "share-" + System.nanoTime();
    try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", args[0]))) {
      ShareConsumers share = new ShareConsumers(args[0], admin, run);
      if (args.length > 1) {
        Behaviours.behaviour("share: restart of the broker", share::afterTheKill);
        return;
      }
      Behaviours.behaviour("share: two consumers", share::twoConsumers);
      Behaviours.behaviour("share: accept, release, reject", share::acknowledgements);
      Behaviours.behaviour("share: delivery count", share::deliveryCount);
      Behaviours.behaviour("share: takeover", share::takeover);
      Behaviours.behaviour("share: offsets by admin", share::administration);
      share.beforeTheKill();
      System.out.println("run\t" + run);
    }
  }
}
