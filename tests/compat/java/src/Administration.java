import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** What AdminClient offers beyond what the other behaviours need. */
final class Administration {
  private final Clients clients;
  private final Admin admin;
  private final String run;

  Administration(Clients clients, Admin admin, String run) {
    this.clients = clients;
    this.admin = admin;
    this.run = run;
  }

  private String topic(String name, int partitions) throws Exception {
    String made = run + "-admin-" + name;
    admin.createTopics(List.of(new NewTopic(made, partitions, (short) 1))).all().get();
    return made;
  }

  private static void fails(Class<?> type, Behaviours.Body body) throws Exception {
    try {
      body.run();
    } catch (ExecutionException error) {
      if (type.isInstance(error.getCause())) return;
      throw error;
    }
    throw new AssertionError("no " + type.getSimpleName());
  }

  private void cluster() throws Exception {
    var cluster = admin.describeCluster();
    Behaviours.same(cluster.nodes().get().size(), 1, "nodes");
    Behaviours.holds(cluster.controller().get() != null && !cluster.clusterId().get().isEmpty(), "controller and id");
    Behaviours.holds(admin.listPartitionReassignments().reassignments().get().isEmpty(), "no reassignments");
    Behaviours.holds(!admin.describeFeatures().featureMetadata().get().finalizedFeatures().isEmpty(), "features");
  }

  private void topics() throws Exception {
    String topic = topic("topics", 2);
    NewTopic again = new NewTopic(topic, Optional.of(2), Optional.empty());
    fails(TopicExistsException.class, () -> admin.createTopics(List.of(again)).all().get());
    var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    admin.deleteTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(described.topicId()))).all().get();
    Behaviours.holds(!admin.listTopics().names().get().contains(topic), "deleted by its id");
  }

  private void partitions() throws Exception {
    String topic = topic("partitions", 2);
    admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
    var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    Behaviours.same(described.partitions().size(), 5, "partitions");
  }

  private void configs() throws Exception {
    ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic("configs", 1));
    AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
    var shown = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms");
    Behaviours.same(shown.value() + shown.source(), "7200000DYNAMIC_TOPIC_CONFIG", "retention.ms");
    AlterConfigOp wrong = new AlterConfigOp(new ConfigEntry("retention.ms", "x"), AlterConfigOp.OpType.SET);
    fails(InvalidConfigurationException.class, () -> admin.incrementalAlterConfigs(Map.of(resource, List.of(wrong))).all().get());
    ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
    int nodeId = admin.describeCluster().nodes().get().iterator().next().id();
    broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(nodeId));
    Behaviours.holds(!admin.describeConfigs(List.of(broker)).all().get().get(broker).entries().isEmpty(), "of the broker");
  }

  private void deleteRecords() throws Exception {
    String topic = topic("records", 1);
    TopicPartition first = new TopicPartition(topic, 0);
    clients.send(topic, Map.of(), 10);
    var deleted = admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(4)));
    Behaviours.same(deleted.lowWatermarks().get(first).get().lowWatermark(), 4L, "low watermark");
    Behaviours.same(admin.listOffsets(Map.of(first, OffsetSpec.earliest())).partitionResult(first).get().offset(), 4L, "start");
  }

  private void groups() throws Exception {
    String topic = topic("groups", 2);
    String group = run + "-admin-group";
    clients.send(topic, Map.of(), 10);
    try (KafkaConsumer<String, String> consumer = clients.consumer(Map.of("group.id", group))) {
      consumer.subscribe(List.of(topic));
      Behaviours.same(Clients.poll(consumer, 10, 30_000).size(), 10, "records");
      consumer.commitSync();
      Behaviours.same(admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().size(), 1, "members");
      fails(org.apache.kafka.common.errors.GroupNotEmptyException.class,
          () -> admin.deleteConsumerGroups(List.of(group)).all().get());
    }
    Behaviours.holds(admin.listConsumerGroups().all().get().stream().anyMatch(g -> g.groupId().equals(group)), "listed");
    Behaviours.behaviour("admin: delete offsets", () -> {
      TopicPartition first = new TopicPartition(topic, 0);
      admin.deleteConsumerGroupOffsets(group, Set.of(first)).all().get();
      var left = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
      Behaviours.holds(!left.containsKey(first) && left.containsKey(new TopicPartition(topic, 1)), "one of two is gone");
    });
    admin.deleteConsumerGroups(List.of(group)).all().get();
    Behaviours.holds(admin.listConsumerGroups().all().get().stream().noneMatch(g -> g.groupId().equals(group)), "deleted");
  }

  private void producersAndTransactions() throws Exception {
    String topic = topic("open", 1);
    String id = run + "-admin-txn";
    TopicPartition first = new TopicPartition(topic, 0);
    KafkaProducer<String, String> producer = clients.transactional(id);
    producer.beginTransaction();
    producer.send(new ProducerRecord<>(topic, "open")).get();
    Behaviours.behaviour("admin: describe producers", () -> {
      List<ProducerState> active = admin.describeProducers(List.of(first)).partitionResult(first).get().activeProducers();
      Behaviours.same(active.size(), 1, "producers");
      Behaviours.same(active.get(0).currentTransactionStartOffset().getAsLong(), 0L, "start of the transaction");
    });
    Behaviours.behaviour("admin: describe transactions", () -> {
      TransactionDescription open = admin.describeTransactions(List.of(id)).description(id).get();
      Behaviours.same(open.state(), TransactionState.ONGOING, "state");
      Behaviours.same(open.topicPartitions(), Set.of(first), "partitions");
      Behaviours.holds(admin.listTransactions().all().get().stream().anyMatch(t -> t.transactionalId().equals(id)), "listed");
      ProducerState state = admin.describeProducers(List.of(first)).partitionResult(first).get().activeProducers().get(0);
      admin.abortTransaction(new AbortTransactionSpec(
          first, state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))).all().get();
      clients.send(topic, Map.of(), 1);
      Behaviours.same(Clients.values(clients.read(topic, 0, 1, "read_committed")), List.of("v0"), "after abortTransaction");
    });
    admin.fenceProducers(List.of(id)).all().get();
    producer.close(java.time.Duration.ZERO);
  }

  private void quotas() throws Exception {
    ClientQuotaEntity entity = new ClientQuotaEntity(Map.of("client-id", run));
    admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
        entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
    ClientQuotaFilter filter = ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity("client-id", run)));
    Behaviours.same(admin.describeClientQuotas(filter).entities().get(), Map.of(entity, Map.of("producer_byte_rate", 1e6)), "quota");
    admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
        entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))).all().get();
    Behaviours.holds(admin.describeClientQuotas(filter).entities().get().isEmpty(), "removed");
  }

  private void logDirs() throws Exception {
    String topic = topic("dirs", 1);
    clients.send(topic, Map.of(), 100);
    int nodeId = admin.describeCluster().nodes().get().iterator().next().id();
    var dirs = admin.describeLogDirs(List.of(nodeId)).allDescriptions().get().get(nodeId);
    long bytes = 0;
    for (var dir : dirs.values()) {
      var replica = dir.replicaInfos().get(new TopicPartition(topic, 0));
      if (replica != null) bytes += replica.size();
    }
    Behaviours.holds(bytes > 1000, "bytes of the partition: " + bytes);
  }

  void run() {
    Behaviours.behaviour("admin: cluster", this::cluster);
    Behaviours.behaviour("admin: topics", this::topics);
    Behaviours.behaviour("admin: partitions", this::partitions);
    Behaviours.behaviour("admin: configs", this::configs);
    Behaviours.behaviour("admin: delete records", this::deleteRecords);
    Behaviours.behaviour("admin: groups", this::groups);
    try {
      producersAndTransactions();
    } catch (Exception error) {
      System.err.println("open transaction: " + error);
    }
    Behaviours.behaviour("admin: quotas", this::quotas);
    Behaviours.behaviour("admin: log dirs", this::logDirs);
  }
}
