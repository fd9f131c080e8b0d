import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Producers and consumers of one broker, and what the behaviours do with them. */
final class Clients {
  static final int RECORDS = 500;
  final String bootstrap;

  Clients(String bootstrap) {
    this.bootstrap = bootstrap;
  }

  Map<String, Object> with(Map<String, Object> more) {
    Map<String, Object> all = new HashMap<>(Map.of("bootstrap.servers", bootstrap));
    all.putAll(more);
    return all;
  }

  KafkaProducer<String, String> producer(Map<String, Object> more) {
    Map<String, Object> config =
        with(Map.of("key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class));
    config.putAll(Map.of("delivery.timeout.ms", 20_000, "request.timeout.ms", 15_000, "max.block.ms", 20_000));
    config.putAll(more);
    return new KafkaProducer<>(config);
  }

  KafkaProducer<String, String> transactional(String id) {
    KafkaProducer<String, String> producer = producer(Map.of("transactional.id", id, "transaction.timeout.ms", 60_000));
    producer.initTransactions();
    return producer;
  }

  KafkaConsumer<String, String> consumer(Map<String, Object> more) {
    Map<String, Object> config = with(Map.of(
        "auto.offset.reset", "earliest",
        "enable.auto.commit", "false",
        "key.deserializer", StringDeserializer.class,
        "value.deserializer", StringDeserializer.class));
    config.putAll(more);
    return new KafkaConsumer<>(config);
  }

  void send(String topic, Map<String, Object> config, int count) throws Exception {
    try (KafkaProducer<String, String> producer = producer(config)) {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (int i = 0; i < count; i++) sent.add(producer.send(new ProducerRecord<>(topic, "k" + i, "v" + i)));
      producer.flush();
      for (Future<RecordMetadata> each : sent) each.get();
    }
  }

  /** Reads partition 0 from a place until there are `count` records. */
  List<ConsumerRecord<String, String>> read(String topic, long from, int count, String isolation) {
    TopicPartition first = new TopicPartition(topic, 0);
    try (KafkaConsumer<String, String> consumer = consumer(Map.of("isolation.level", isolation))) {
      consumer.assign(List.of(first));
      consumer.seek(first, from);
      return poll(consumer, count, 30_000);
    }
  }

  /** Polls until there are `count` records; with what there is when the time is over. */
  static List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> consumer, int count, long ms) {
    List<ConsumerRecord<String, String>> got = new ArrayList<>();
    long end = System.currentTimeMillis() + ms;
    while (got.size() < count && System.currentTimeMillis() < end) {
      consumer.poll(Duration.ofMillis(200)).forEach(got::add);
    }
    return got;
  }

  static List<String> values(List<ConsumerRecord<String, String>> records) {
    List<String> values = new ArrayList<>();
    for (ConsumerRecord<String, String> each : records) values.add(each.value());
    return values;
  }

  static List<String> numbered(int count) {
    List<String> values = new ArrayList<>();
    for (int i = 0; i < count; i++) values.add("v" + i);
    return values;
  }
}
