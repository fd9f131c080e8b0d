import java.io.File;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/** Kafka Streams with exactly_once_v2: counts words; is thrown out of its middle; loses its state directory. */
public final class WordCount {
  private static final int WORDS = 10;
  private final String bootstrap;
  private final String run = "streams-" + System.nanoTime();
  private final String in = run + "-in";
  private final String out = run + "-out";
  private int sent = 0;

  private WordCount(String bootstrap) {
    this.bootstrap = bootstrap;
  }

  /** Fails once, at its n-th record, when n is not 0: what it had done since its last commit is undone. */
  private KafkaStreams start(File state, int failAt) {
    StreamsBuilder builder = new StreamsBuilder();
    int[] seen = {0};
    KTable<String, Long> counts = builder.<String, String>stream(in)
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .peek((key, word) -> {
          if (++seen[0] == failAt) throw new IllegalStateException("asked to fail");
        })
        .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
        .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
    counts.toStream().to(out, Produced.with(Serdes.String(), Serdes.Long()));
    Properties config = new Properties();
    config.put("application.id", run);
    config.put("bootstrap.servers", bootstrap);
    config.put("processing.guarantee", "exactly_once_v2");
    config.put("default.key.serde", Serdes.StringSerde.class);
    config.put("default.value.serde", Serdes.StringSerde.class);
    config.put("state.dir", state.getPath());
    config.put("commit.interval.ms", 200);
    config.put("statestore.cache.max.bytes", 0);
    config.put("consumer.auto.offset.reset", "earliest");
    // Its members do not leave; who comes after them waits for the end of their sessions.
    config.put("consumer.session.timeout.ms", 6000);
    config.put("consumer.heartbeat.interval.ms", 1000);
    KafkaStreams streams = new KafkaStreams(builder.build(), config);
    streams.setUncaughtExceptionHandler(error ->
        org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD);
    streams.start();
    return streams;
  }

  /** Lines of two words; each word comes as often as the others. */
  private void send(int lines) throws Exception {
    Map<String, Object> config = Map.of("bootstrap.servers", bootstrap,
        "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class);
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(config)) {
      for (int i = 0; i < lines; i++) {
        String line = "w" + (2 * i) % WORDS + " w" + (2 * i + 1) % WORDS;
        producer.send(new ProducerRecord<>(in, "k" + i, line));
      }
      producer.flush();
    }
    sent += lines;
  }

  /** Each word's counts must be 1, 2, 3, ... up to the number that was sent: none twice, none left out. */
  private void check() {
    long expected = 2L * sent / WORDS;
    Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed",
        "key.deserializer", StringDeserializer.class, "value.deserializer", LongDeserializer.class);
    Map<String, Long> last = new HashMap<>();
    try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(config)) {
      List<TopicPartition> partitions = List.of(new TopicPartition(out, 0), new TopicPartition(out, 1));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      long end = System.currentTimeMillis() + 40_000;
      while (System.currentTimeMillis() < end) {
        for (ConsumerRecord<String, Long> each : consumer.poll(Duration.ofMillis(200))) {
          Behaviours.same(each.value(), last.getOrDefault(each.key(), 0L) + 1, "the next count of " + each.key());
          last.put(each.key(), each.value());
        }
        if (last.size() == WORDS && last.values().stream().allMatch(count -> count == expected)) break;
      }
      Behaviours.same(last.size(), WORDS, "words");
      for (Map.Entry<String, Long> each : last.entrySet()) Behaviours.same(each.getValue(), expected, each.getKey());
    }
  }

  private void run() throws Exception {
    List<NewTopic> topics = new ArrayList<>();
    for (String name : List.of(in, out)) topics.add(new NewTopic(name, 2, (short) 1));
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
      admin.createTopics(topics).all().get();
    }
    File state = Files.createTempDirectory("skerry-streams").toFile();
    send(200);
    Behaviours.behaviour("word count, exactly once", () -> {
      try (KafkaStreams streams = start(state, 0)) {
        check();
      }
    });
    Behaviours.behaviour("goes on after a crash", () -> {
      send(200);
      try (KafkaStreams streams = start(state, 150)) {
        check();
      }
    });
    Behaviours.behaviour("its state after a restart", () -> {
      send(100);
      try (KafkaStreams streams = start(Files.createTempDirectory("skerry-streams").toFile(), 0)) {
        check();
      }
    });
  }

  public static void main(String[] args) throws Exception {
    System.out.println("version\t" + AppInfoParser.getVersion());
    new WordCount(args[0]).run();
    System.exit(0);
  }
}
