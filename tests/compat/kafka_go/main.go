// The behaviours of the matrix, with kafka-go against one broker: its Reader and Conn speak fixed old versions.
// Usage: kafka_go BOOTSTRAP
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	. "skerry/compat/behaviours"

	"github.com/segmentio/kafka-go"
)

const records = 500

type compat struct {
	ctx       context.Context
	bootstrap string
	run       string
	client    *kafka.Client
	transport *kafka.Transport
}

func (c *compat) topic(name string, partitions int) string {
	topic := c.run + "-" + name
	made := Must(c.client.CreateTopics(c.ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1},
	}}))
	Ok(made.Errors[topic])
	return topic
}

func messagesOf(values []string) []kafka.Message {
	made := make([]kafka.Message, len(values))
	for i, value := range values {
		made[i] = kafka.Message{Value: []byte(value)}
	}
	return made
}

func (c *compat) send(topic string, change func(*kafka.Writer), messages ...kafka.Message) {
	writer := &kafka.Writer{
		Addr: kafka.TCP(c.bootstrap), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond,
		Transport: c.transport,
	}
	if change != nil {
		change(writer)
	}
	Ok(writer.WriteMessages(c.ctx, messages...))
	Ok(writer.Close())
}

func (c *compat) reader(config kafka.ReaderConfig) *kafka.Reader {
	config.Brokers, config.MaxWait = []string{c.bootstrap}, 200*time.Millisecond
	return kafka.NewReader(config)
}

func (c *compat) read(topic string, from int64, count int, isolation kafka.IsolationLevel, wait time.Duration) []kafka.Message {
	reader := c.reader(kafka.ReaderConfig{Topic: topic, Partition: 0, IsolationLevel: isolation})
	defer reader.Close()
	Ok(reader.SetOffset(from))
	return c.take(reader, count, wait)
}

func (c *compat) take(reader *kafka.Reader, count int, wait time.Duration) []kafka.Message {
	ctx, cancel := context.WithTimeout(c.ctx, wait)
	defer cancel()
	var got []kafka.Message
	for len(got) < count {
		message, err := reader.FetchMessage(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return got
		}
		got = append(got, Must(message, err))
	}
	return got
}

func (c *compat) all(topic string, from int64, count int) []kafka.Message {
	return c.read(topic, from, count, kafka.ReadUncommitted, 30*time.Second)
}

func valuesOf(messages []kafka.Message) []string {
	values := make([]string, len(messages))
	for i, message := range messages {
		values[i] = string(message.Value)
	}
	return values
}

func (c *compat) produceAndRead(name string, change func(*kafka.Writer)) {
	topic := c.topic(name, 1)
	c.send(topic, change, messagesOf(Numbered(records))...)
	SameText(valuesOf(c.all(topic, 0, records)), Numbered(records), "values")
}

func (c *compat) producing() {
	codecs := map[string]kafka.Compression{
		"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
	}
	for name, codec := range codecs {
		Run("produce "+name, func() { c.produceAndRead(name, func(w *kafka.Writer) { w.Compression = codec }) })
	}
	acks := map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll}
	for name, each := range acks {
		Run("acks "+name, func() { c.produceAndRead("acks-"+name, func(w *kafka.Writer) { w.RequiredAcks = each }) })
	}
	Run("keys, headers, nulls", func() {
		topic := c.topic("shapes", 1)
		headers := []kafka.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}}
		c.send(topic, nil, kafka.Message{Key: []byte("k"), Value: []byte("v"), Headers: headers}, kafka.Message{Key: []byte("k")})
		c.send(topic, nil, kafka.Message{Value: []byte("last")})
		got := c.all(topic, 0, 3)
		Same(string(got[0].Key)+string(got[0].Headers[1].Value), "k2", "key and headers")
		Same(got[1].Value == nil && string(got[1].Key) == "k", true, "a null value")
		Same(got[2].Key == nil && string(got[2].Value) == "last", true, "a null key")
	})
	Run("large batch", func() {
		topic := c.topic("large", 1)
		sent := make([]string, 3000)
		for i := range sent {
			sent[i] = fmt.Sprint(i, strings.Repeat("x", 900))
		}
		c.send(topic, func(w *kafka.Writer) { w.BatchSize, w.BatchBytes = 3000, 1_000_000 }, messagesOf(sent)...)
		Same(slices.Equal(valuesOf(c.all(topic, 0, 3000)), sent), true, "3000 records of 900 bytes")
	})
}

func (c *compat) offsets() {
	topic := c.topic("offsets", 1)
	for i, value := range Numbered(10) {
		c.send(topic, nil, kafka.Message{Value: []byte(value), Time: time.UnixMilli(int64(1000 * (i + 1)))})
	}
	Run("consume from an offset", func() {
		SameText(valuesOf(c.all(topic, 7, 3)), []string{"v7", "v8", "v9"}, "values")
	})
	Run("consume from a time", func() {
		reader := c.reader(kafka.ReaderConfig{Topic: topic, Partition: 0})
		defer reader.Close()
		Ok(reader.SetOffsetAt(c.ctx, time.UnixMilli(4500)))
		SameText(valuesOf(c.take(reader, 1, 30*time.Second)), []string{"v4"}, "value")
	})
	Run("list offsets", func() {
		asked := map[string][]kafka.OffsetRequest{topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)}}
		listed := Must(c.client.ListOffsets(c.ctx, &kafka.ListOffsetsRequest{Topics: asked})).Topics[topic][0]
		SameText([]int64{listed.FirstOffset, listed.LastOffset}, []int64{0, 10}, "first and last")
		conn := Must(kafka.DialLeader(c.ctx, "tcp", c.bootstrap, topic, 0))
		defer conn.Close()
		first, last, err := conn.ReadOffsets()
		Ok(err)
		SameText([]int64{first, last}, []int64{0, 10}, "of the connection")
	})
}

func (c *compat) groups() {
	topic, group := c.topic("group", 4), c.run+"-classic"
	config := kafka.ReaderConfig{
		Topic: topic, GroupID: group, StartOffset: kafka.FirstOffset, HeartbeatInterval: 300 * time.Millisecond,
	}
	seen := map[string]int{}
	var lock sync.Mutex
	// Reads and commits until all members together have seen `total`; says how many were its own.
	member := func(reader *kafka.Reader, total int) (own int) {
		ctx, cancel := context.WithTimeout(c.ctx, 40*time.Second)
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				lock.Lock()
				isDone := len(seen) >= total
				lock.Unlock()
				if isDone {
					cancel()
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		for {
			message, err := reader.FetchMessage(ctx)
			if err != nil {
				return own
			}
			own++
			lock.Lock()
			seen[fmt.Sprint(message.Partition, "/", message.Offset)]++
			lock.Unlock()
			Ok(reader.CommitMessages(c.ctx, message))
		}
	}
	members := func(id string) map[string]int {
		described := Must(c.client.DescribeGroups(c.ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{id}}))
		counts := map[string]int{}
		for _, each := range described.Groups[0].Members {
			for _, assigned := range each.MemberAssignments.Topics {
				counts[each.MemberID] = len(assigned.Partitions)
			}
		}
		return counts
	}
	Run("group: two members", func() {
		a, b := c.reader(config), c.reader(config)
		defer a.Close()
		defer b.Close()
		Until("two partitions each", func() bool {
			counts := members(group)
			total := 0
			for _, count := range counts {
				total += count
			}
			return len(counts) == 2 && total == 4
		})
		c.send(topic, func(w *kafka.Writer) { w.Balancer = &kafka.RoundRobin{} }, messagesOf(Numbered(400))...)
		owns := make(chan int, 2)
		for _, each := range []*kafka.Reader{a, b} {
			go func() { owns <- member(each, 400) }()
		}
		SameText([]int{<-owns, <-owns}, []int{200, 200}, "records of each")
	})
	Run("group: resume", func() {
		c.send(topic, func(w *kafka.Writer) { w.Balancer = &kafka.RoundRobin{} }, messagesOf(Numbered(100))...)
		reader := c.reader(config)
		defer reader.Close()
		Same(member(reader, 500), 100, "records after the commits")
	})
	Run("committed offsets", func() {
		asked := &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1, 2, 3}}}
		sum := int64(0)
		for _, each := range Must(c.client.OffsetFetch(c.ctx, asked)).Topics[topic] {
			sum += each.CommittedOffset
		}
		Same(sum, 500, "sum of all")
	})
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 140*time.Second)
	defer cancel()
	c := &compat{ctx: ctx, bootstrap: os.Args[1], run: fmt.Sprintf("kafka-go-%d", time.Now().UnixNano())}
	// It answers from its memory; what was just changed is to be seen.
	c.transport = &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	c.client = &kafka.Client{Addr: kafka.TCP(c.bootstrap), Timeout: 20 * time.Second, Transport: c.transport}
	Version("github.com/segmentio/kafka-go")
	Run("metadata", func() {
		topic := c.topic("metadata", 3)
		seen := Must(c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}}))
		Same(len(seen.Topics[0].Partitions), 3, "partitions")
		Same(seen.Controller.ID, seen.Brokers[0].ID, "controller")
	})
	c.producing()
	c.offsets()
	c.groups()
	c.administration()
	Skip("not in this client", "idempotent producer", "group: KIP-848", "admin: delete records",
		"admin: describe producers", "admin: describe transactions", "admin: log dirs")
	Skip("has the requests only, no producer for them",
		"txn: commit", "txn: abort", "txn: read_committed", "txn: fencing", "txn: consume-transform-produce")
}
