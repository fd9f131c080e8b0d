import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The main flows of Kafka's own client against one broker. Prints a line per flow; fails at the first wrong one. */
public final class Compat {
  private static final int RECORDS = 500;
  private static int passed = 0;
  private final Map<String, Object> base;
  private final String topic = "java-" + System.nanoTime();
  private final String group = "group-" + topic;

  private Compat(String bootstrap) {
    base = Map.of("bootstrap.servers", bootstrap);
  }

  private static void check(String what, boolean holds) {
    if (!holds) throw new AssertionError(what);
    passed += 1;
    System.out.println("ok " + what);
  }

  private Map<String, Object> with(Map<String, Object> more) {
    Map<String, Object> all = new HashMap<>(base);
    all.putAll(more);
    return all;
  }

  private void topics(Admin admin) throws Exception {
    check("describeCluster", admin.describeCluster().nodes().get().size() == 1);
    NewTopic asked = new NewTopic(topic, Optional.of(4), Optional.empty()).configs(Map.of("retention.ms", "3600000"));
    admin.createTopics(List.of(asked)).all().get();
    check("createTopics", admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 4);
    try {
      admin.createTopics(List.of(asked)).all().get();
      check("createTopics again", false);
    } catch (Exception error) {
      check("createTopics again", error.getCause() instanceof TopicExistsException);
    }
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(6))).all().get();
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
    String retention = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value();
    check("incrementalAlterConfigs", retention.equals("7200000"));
    check("listPartitionReassignments", admin.listPartitionReassignments().reassignments().get().isEmpty());
  }

  private void produce(String codec, String acks, boolean idempotent) throws Exception {
    Map<String, Object> config = with(Map.of(
        "key.serializer", StringSerializer.class,
        "value.serializer", StringSerializer.class,
        "compression.type", codec,
        "enable.idempotence", idempotent,
        "acks", acks));
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (int i = 0; i < RECORDS; i++) {
        ProducerRecord<String, String> next = new ProducerRecord<>(topic, "k" + i, i % 10 == 0 ? null : codec + i);
        next.headers().add("codec", codec.getBytes());
        sent.add(producer.send(next));
      }
      for (Future<RecordMetadata> each : sent) each.get();
      check("produce " + codec + " acks=" + acks + (idempotent ? " idempotent" : ""), sent.size() == RECORDS);
    }
  }

  private void consume(Admin admin, int expected) throws Exception {
    Map<String, Object> config = with(Map.of(
        "group.id", group,
        "auto.offset.reset", "earliest",
        "enable.auto.commit", "false",
        "partition.assignment.strategy", CooperativeStickyAssignor.class.getName(),
        "key.deserializer", StringDeserializer.class,
        "value.deserializer", StringDeserializer.class));
    Set<String> seen = new HashSet<>();
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config)) {
      consumer.subscribe(List.of(topic));
      long end = System.currentTimeMillis() + 60_000;
      while (seen.size() < expected && System.currentTimeMillis() < end) {
        for (ConsumerRecord<String, String> next : consumer.poll(Duration.ofMillis(500))) {
          seen.add(next.partition() + "/" + next.offset());
        }
      }
      consumer.commitSync();
      check("consume in a group", seen.size() == expected);
      TopicPartition first = new TopicPartition(topic, 0);
      check("offsetsForTimes", consumer.offsetsForTimes(Map.of(first, 0L)).get(first).offset() == 0);
    }
    long committed = 0;
    Map<TopicPartition, OffsetAndMetadata> offsets =
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
    for (OffsetAndMetadata each : offsets.values()) committed += each.offset();
    check("committed offsets", committed == expected);
  }

  private void groups(Admin admin) throws Exception {
    check("listConsumerGroups", admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)));
    check("describeConsumerGroups", admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().isEmpty());
    TopicPartition first = new TopicPartition(topic, 0);
    check("listOffsets maxTimestamp",
        admin.listOffsets(Map.of(first, OffsetSpec.maxTimestamp())).partitionResult(first).get().timestamp() > 0);
    admin.deleteConsumerGroups(List.of(group)).all().get();
    check("deleteConsumerGroups", admin.listConsumerGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)));
    admin.deleteTopics(List.of(topic)).all().get();
    check("deleteTopics", !admin.listTopics().names().get().contains(topic));
  }

  public static void main(String[] args) throws Exception {
    Compat compat = new Compat(args[0]);
    try (Admin admin = Admin.create(compat.base)) {
      compat.topics(admin);
      compat.produce("none", "all", true);
      compat.produce("gzip", "1", false);
      compat.produce("snappy", "all", true);
      compat.produce("lz4", "0", false);
      compat.produce("zstd", "all", true);
      compat.consume(admin, 5 * RECORDS);
      compat.groups(admin);
    }
    System.out.println(passed + " passed, 0 failed");
  }
}
