import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** KafkaConsumer with group.protocol=consumer (KIP-848) against one broker; fails at the first wrong flow. */
final class ConsumerGroups {
  private static final int PARTITIONS = 6;
  private final Map<String, Object> base;
  private final String topic = "kip848-" + System.nanoTime();
  private final String group = "group-" + topic;
  private final Set<String> seen = new HashSet<>();

  private ConsumerGroups(String bootstrap) {
    base = Map.of("bootstrap.servers", bootstrap);
  }

  private static void check(String what, boolean holds) {
    if (!holds) throw new AssertionError(what);
  }

  private Map<String, Object> with(Map<String, Object> more) {
    Map<String, Object> all = new HashMap<>(base);
    all.putAll(more);
    return all;
  }

  private KafkaConsumer<String, String> consumer(String groupId, Map<String, Object> more) {
    Map<String, Object> config = with(Map.of(
        "group.id", groupId,
        "group.protocol", "consumer",
        "auto.offset.reset", "earliest",
        "enable.auto.commit", "false",
        "key.deserializer", StringDeserializer.class,
        "value.deserializer", StringDeserializer.class));
    config.putAll(more);
    return new KafkaConsumer<>(config);
  }

  private void produce(int records) throws Exception {
    Map<String, Object> config =
        with(Map.of("key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class));
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      for (int i = 0; i < records; i++) producer.send(new ProducerRecord<>(topic, "k" + i, "v" + i)).get();
    }
  }

  private void poll(KafkaConsumer<String, String> consumer) {
    for (ConsumerRecord<String, String> next : consumer.poll(Duration.ofMillis(100))) {
      seen.add(next.topic() + "/" + next.partition() + "/" + next.offset());
    }
  }

  private void until(String what, List<KafkaConsumer<String, String>> consumers, BooleanSupplier holds) {
    long end = System.currentTimeMillis() + 60_000;
    while (!holds.getAsBoolean() && System.currentTimeMillis() < end) {
      for (KafkaConsumer<String, String> each : consumers) poll(each);
    }
    check(what, holds.getAsBoolean());
  }

  private ConsumerGroupDescription described(Admin admin, String groupId) {
    try {
      return admin.describeConsumerGroups(List.of(groupId)).all().get().get(groupId);
    } catch (Exception error) {
      throw new AssertionError(error);
    }
  }

  private void balance(Admin admin) throws Exception {
    KafkaConsumer<String, String> a = consumer(group, Map.of());
    a.subscribe(List.of(topic));
    until("one member consumes all", List.of(a), () -> seen.size() == 100 && a.assignment().size() == PARTITIONS);
    a.commitSync();
    KafkaConsumer<String, String> b = consumer(group, Map.of("group.remote.assignor", "range"));
    b.subscribe(List.of(topic));
    until("two members share", List.of(a, b), () -> a.assignment().size() == 3 && b.assignment().size() == 3);
    Set<TopicPartition> both = new HashSet<>(a.assignment());
    both.addAll(b.assignment());
    check("no partition has two owners", both.size() == PARTITIONS);
    until("the group is stable", List.of(a, b), () -> described(admin, group).state().toString().equals("Stable"));
    check("its two members are described", described(admin, group).members().size() == 2);
    check("its type is listed", admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)));
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(8))).all().get();
    until("new partitions are assigned", List.of(a, b), () -> a.assignment().size() + b.assignment().size() == 8);
    a.commitSync();
    a.close();
    until("who stays takes over", List.of(b), () -> b.assignment().size() == 8);
    produce(100);
    until("and consumes on from the commits", List.of(b), () -> seen.size() == 200);
    b.commitSync();
    b.close();
    check("who left is gone", described(admin, group).members().isEmpty());
    long committed = 0;
    for (var each : admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().values()) {
      committed += each.offset();
    }
    check("all is committed", committed == 200);
  }

  private void statics(Admin admin) throws Exception {
    String id = group + "-static";
    Map<String, Object> config = Map.of("group.instance.id", "i");
    KafkaConsumer<String, String> a = consumer(id, config);
    a.subscribe(List.of(topic));
    until("a static member joins", List.of(a), () -> a.assignment().size() == 8);
    a.close();
    check("it is still a member while it is away", described(admin, id).members().size() == 1);
    KafkaConsumer<String, String> b = consumer(id, config);
    b.subscribe(List.of(topic));
    until("and takes its place again", List.of(b), () -> b.assignment().size() == 8);
    b.close();
  }

  private void patterns(Admin admin) throws Exception {
    KafkaConsumer<String, String> a = consumer(group + "-pattern", Map.of("metadata.max.age.ms", "1000"));
    a.subscribe(Pattern.compile(topic + ".*"));
    until("a pattern finds the topic", List.of(a), () -> a.assignment().size() == 8);
    admin.createTopics(List.of(new NewTopic(topic + "-more", 2, (short) 1))).all().get();
    until("and one that comes later", List.of(a), () -> a.assignment().size() == 10);
    a.close();
    serverPatterns(admin);
  }

  /** Clients from 4.0 on let the broker match (SubscriptionPattern); older ones do not have it. */
  private void serverPatterns(Admin admin) throws Exception {
    Class<?> type;
    try {
      type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
    } catch (ClassNotFoundException older) {
      return;
    }
    KafkaConsumer<String, String> a = consumer(group + "-re2", Map.of());
    Object pattern = type.getConstructor(String.class).newInstance("kip848-.*-mor[e]");
    KafkaConsumer.class.getMethod("subscribe", type).invoke(a, pattern);
    until("the broker matches a pattern", List.of(a), () -> a.assignment().size() >= 2);
    a.close();
    KafkaConsumer<String, String> wrong = consumer(group + "-wrong", Map.of());
    KafkaConsumer.class.getMethod("subscribe", type).invoke(wrong, type.getConstructor(String.class).newInstance("(?=x)"));
    String error = "";
    long end = System.currentTimeMillis() + 20_000;
    while (error.isEmpty() && System.currentTimeMillis() < end) {
      try {
        poll(wrong);
      } catch (Exception thrown) {
        error = thrown.getClass().getSimpleName();
      }
    }
    check("and refuses one that is none", error.equals("InvalidRegularExpression"));
    wrong.close();
  }

  private void classic(Admin admin) throws Exception {
    List<KafkaConsumer<String, String>> one = new ArrayList<>();
    one.add(consumer(group, Map.of("group.protocol", "classic")));
    one.get(0).subscribe(List.of(topic));
    until("an empty group takes classic members", one, () -> one.get(0).assignment().size() == 8);
    check("and keeps its offsets", seen.size() == 200);
    one.get(0).close();
    KafkaConsumer<String, String> back = consumer(group, Map.of());
    back.subscribe(List.of(topic));
    until("and new ones again", List.of(back), () -> back.assignment().size() == 8);
    back.close();
    admin.deleteConsumerGroups(List.of(group)).all().get();
    check("it can be deleted", admin.listConsumerGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)));
    admin.deleteTopics(List.of(topic, topic + "-more")).all().get();
  }

  /** A group changes its protocol member by member, and back, while it consumes. */
  private void migrate() throws Exception {
    String id = group + "-migrating";
    KafkaConsumer<String, String> a = consumer(id, Map.of("group.protocol", "classic", "heartbeat.interval.ms", "300",
        "partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
    a.subscribe(List.of(topic));
    until("a classic member has all", List.of(a), () -> a.assignment().size() == 8);
    KafkaConsumer<String, String> b = consumer(id, Map.of());
    b.subscribe(List.of(topic));
    until("a new one joins it and they share", List.of(a, b), () -> a.assignment().size() == 4 && b.assignment().size() == 4);
    Set<TopicPartition> both = new HashSet<>(a.assignment());
    both.addAll(b.assignment());
    check("without a partition in common", both.size() == 8);
    KafkaConsumer<String, String> c = consumer(id, Map.of("group.protocol", "classic", "heartbeat.interval.ms", "300"));
    c.subscribe(List.of(topic));
    until("another classic one as well", List.of(a, b, c),
        () -> !c.assignment().isEmpty() && a.assignment().size() + b.assignment().size() + c.assignment().size() == 8);
    c.close();
    until("who leaves gives back", List.of(a, b), () -> a.assignment().size() + b.assignment().size() == 8);
    a.commitSync();
    b.commitSync();
    b.close();
    until("and the group goes back with its last new member", List.of(a), () -> a.assignment().size() == 8);
    a.commitSync();
    a.close();
  }

  static void run(String bootstrap) throws Exception {
    ConsumerGroups flows = new ConsumerGroups(bootstrap);
    try (Admin admin = Admin.create(flows.base)) {
      admin.createTopics(List.of(new NewTopic(flows.topic, PARTITIONS, (short) 1))).all().get();
      flows.produce(100);
      flows.balance(admin);
      flows.statics(admin);
      flows.patterns(admin);
      flows.classic(admin);
    }
  }
}
