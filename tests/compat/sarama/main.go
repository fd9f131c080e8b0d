// The main flows of sarama against one broker, with its own default version and with an old one. Prints a line per flow.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const records = 200

var passed int

func check(what string, holds bool, details ...any) {
	if !holds {
		fmt.Println(append([]any{"not ok", what}, details...)...)
		fmt.Printf("%d passed, 1 failed\n", passed)
		os.Exit(1)
	}
	passed++
	fmt.Println("ok", what)
}

func must[T any](value T, err error) T {
	if err != nil {
		check("no error", false, err)
	}
	return value
}

func produce(bootstrap, topic, name string, version sarama.KafkaVersion, codec sarama.CompressionCodec, idempotent bool) {
	config := sarama.NewConfig()
	config.Version = version
	config.Producer.Compression = codec
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	if idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer := must(sarama.NewSyncProducer([]string{bootstrap}, config))
	batch := make([]*sarama.ProducerMessage, records)
	for i := range batch {
		batch[i] = &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(fmt.Sprint("k", i)), Value: sarama.StringEncoder(fmt.Sprint(name, i)),
			Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte(name)}},
		}
	}
	err := producer.SendMessages(batch)
	check("produce "+name, err == nil && producer.Close() == nil, err)
}

type member struct {
	left int
	seen map[string]bool
	done context.CancelFunc
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, ok := <-claim.Messages():
			if !ok || m.left == 0 {
				return nil
			}
			m.seen[fmt.Sprintf("%d/%d", message.Partition, message.Offset)] = true
			session.MarkMessage(message, "")
			if m.left--; m.left == 0 {
				session.Commit()
				m.done()
				return nil
			}
		}
	}
}

// One member after another; each goes on where the one before it has committed.
func group(bootstrap, topic string, version sarama.KafkaVersion, expected int) {
	config := sarama.NewConfig()
	config.Version = version
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	seen := map[string]bool{}
	for _, count := range []int{expected / 3, expected - expected/3} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		members := must(sarama.NewConsumerGroup([]string{bootstrap}, "group-"+topic, config))
		one := &member{left: count, seen: seen, done: cancel}
		err := members.Consume(ctx, []string{topic}, one)
		check("consume and commit in a group", one.left == 0 && members.Close() == nil, one.left, err)
	}
	check("each record once", len(seen) == expected, len(seen))
}

func flows(bootstrap, topic string, version sarama.KafkaVersion) {
	config := sarama.NewConfig()
	config.Version = version
	admin := must(sarama.NewClusterAdmin([]string{bootstrap}, config))
	err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false)
	check("create topic", err == nil, err)
	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4}
	if version.IsAtLeast(sarama.V2_1_0_0) {
		codecs = append(codecs, sarama.CompressionZSTD)
	}
	for _, codec := range codecs {
		produce(bootstrap, topic, codec.String(), version, codec, codec == sarama.CompressionLZ4)
	}
	expected := len(codecs) * records
	group(bootstrap, topic, version, expected)
	client := must(sarama.NewClient([]string{bootstrap}, config))
	oldest := must(client.GetOffset(topic, 0, sarama.OffsetOldest))
	newest := must(client.GetOffset(topic, 0, sarama.OffsetNewest))
	check("offsets", oldest == 0 && newest == int64(expected), oldest, newest)
	check("offset by time", must(client.GetOffset(topic, 0, 1)) == 0)
	committed := must(admin.ListConsumerGroupOffsets("group-"+topic, map[string][]int32{topic: {0}}))
	check("committed offset", committed.GetBlock(topic, 0).Offset == int64(expected))
	check("delete group", admin.DeleteConsumerGroup("group-"+topic) == nil)
	check("delete topic", admin.DeleteTopic(topic) == nil)
	client.Close()
	admin.Close()
}

func main() {
	for _, version := range []sarama.KafkaVersion{sarama.DefaultVersion, sarama.V1_1_0_0} {
		fmt.Println("# as for Kafka", version)
		flows(os.Args[1], fmt.Sprintf("sarama-%d", time.Now().UnixNano()), version)
	}
	fmt.Printf("%d passed, 0 failed\n", passed)
}
