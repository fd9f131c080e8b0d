// The main flows of kafka-go against one broker: its Reader and Conn speak fixed old versions. Prints a line per flow.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
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

func topics(bootstrap, topic string) {
	conn := must(kafka.Dial("tcp", bootstrap))
	defer conn.Close()
	controller := must(conn.Controller())
	check("controller", net.JoinHostPort(controller.Host, strconv.Itoa(controller.Port)) == bootstrap)
	err := conn.CreateTopics(kafka.TopicConfig{Topic: topic, NumPartitions: 2, ReplicationFactor: 1})
	check("create topic", err == nil, err)
	check("partitions", len(must(conn.ReadPartitions(topic))) == 2)
}

func produce(ctx context.Context, bootstrap, topic string, name string, codec kafka.Compression, acks kafka.RequiredAcks) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: topic, Compression: codec, RequiredAcks: acks,
		BatchTimeout: 10 * time.Millisecond, Balancer: &kafka.Hash{},
	}
	sent := make([]kafka.Message, records)
	for i := range sent {
		sent[i] = kafka.Message{
			Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "%s %d", name, i),
			Headers: []kafka.Header{{Key: "h", Value: []byte(name)}},
		}
	}
	err := writer.WriteMessages(ctx, sent...)
	check("produce "+name, err == nil && writer.Close() == nil, err)
}

// Reads as the only member of a group and commits; a second reader goes on after it.
func group(ctx context.Context, bootstrap, topic string, expected int) {
	config := kafka.ReaderConfig{
		Brokers: []string{bootstrap}, Topic: topic, GroupID: "group-" + topic, StartOffset: kafka.FirstOffset,
		MaxWait: 200 * time.Millisecond,
	}
	seen := map[string]bool{}
	for _, count := range []int{expected / 3, expected - expected/3} {
		reader := kafka.NewReader(config)
		for range count {
			message := must(reader.FetchMessage(ctx))
			seen[fmt.Sprintf("%d/%d", message.Partition, message.Offset)] = true
			if err := reader.CommitMessages(ctx, message); err != nil {
				check("commit", false, err)
			}
		}
		check("read and commit in a group", reader.Close() == nil)
	}
	check("each record once", len(seen) == expected, len(seen))
}

func offsets(bootstrap, topic string, expected int) {
	sum := 0
	for partition := range 2 {
		conn := must(kafka.DialLeader(context.Background(), "tcp", bootstrap, topic, partition))
		first, last, err := conn.ReadOffsets()
		check("first offset", err == nil && first == 0, err)
		sum += int(last)
		at := must(conn.ReadOffset(time.UnixMilli(1)))
		check("offset by time", at == 0, at)
		conn.Close()
	}
	check("last offsets", sum == expected, sum)
	conn := must(kafka.Dial("tcp", bootstrap))
	check("delete topic", conn.DeleteTopics(topic) == nil)
	conn.Close()
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	bootstrap, topic := os.Args[1], fmt.Sprintf("kafka-go-%d", time.Now().UnixNano())
	topics(bootstrap, topic)
	produce(ctx, bootstrap, topic, "none", 0, kafka.RequireAll)
	produce(ctx, bootstrap, topic, "gzip", kafka.Gzip, kafka.RequireOne)
	produce(ctx, bootstrap, topic, "snappy", kafka.Snappy, kafka.RequireAll)
	produce(ctx, bootstrap, topic, "lz4", kafka.Lz4, kafka.RequireAll)
	produce(ctx, bootstrap, topic, "zstd", kafka.Zstd, kafka.RequireAll)
	group(ctx, bootstrap, topic, 5*records)
	offsets(bootstrap, topic, 5*records)
	fmt.Printf("%d passed, 0 failed\n", passed)
}
