// The behaviours of the matrix, with sarama against one broker. Usage: sarama [-as VERSION] BOOTSTRAP
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "skerry/compat/behaviours"

	"github.com/IBM/sarama"
)

const records = 500

type compat struct {
	bootstrap []string
	run       string
	version   sarama.KafkaVersion
	admin     sarama.ClusterAdmin
}

func (c *compat) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = c.version
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	return config
}

func (c *compat) topic(name string, partitions int32) string {
	topic := c.run + "-" + name
	Ok(c.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	return topic
}

func messagesOf(topic string, values []string) []*sarama.ProducerMessage {
	made := make([]*sarama.ProducerMessage, len(values))
	for i, value := range values {
		made[i] = &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}
	}
	return made
}

func (c *compat) send(config *sarama.Config, messages ...*sarama.ProducerMessage) {
	producer := Must(sarama.NewSyncProducer(c.bootstrap, config))
	defer producer.Close()
	Ok(producer.SendMessages(messages))
}

// Reads partition 0 until there are `count` messages; with what there is when the time is over.
func (c *compat) readFor(topic string, from int64, count int, isolation sarama.IsolationLevel, wait time.Duration) []*sarama.ConsumerMessage {
	config := c.config()
	config.Consumer.IsolationLevel = isolation
	consumer := Must(sarama.NewConsumer(c.bootstrap, config))
	defer consumer.Close()
	partition := Must(consumer.ConsumePartition(topic, 0, from))
	defer partition.Close()
	var got []*sarama.ConsumerMessage
	timer := time.After(wait)
	for len(got) < count {
		select {
		case message := <-partition.Messages():
			got = append(got, message)
		case <-timer:
			return got
		}
	}
	return got
}

func (c *compat) read(topic string, from int64, count int) []*sarama.ConsumerMessage {
	return c.readFor(topic, from, count, sarama.ReadUncommitted, 30*time.Second)
}

func (c *compat) committed(topic string, count int) []string {
	return valuesOf(c.readFor(topic, 0, count, sarama.ReadCommitted, 30*time.Second))
}

func valuesOf(messages []*sarama.ConsumerMessage) []string {
	values := make([]string, len(messages))
	for i, message := range messages {
		values[i] = string(message.Value)
	}
	return values
}

func (c *compat) produceAndRead(name string, change func(*sarama.Config)) {
	topic := c.topic(name, 1)
	config := c.config()
	change(config)
	c.send(config, messagesOf(topic, Numbered(records))...)
	SameText(valuesOf(c.read(topic, 0, records)), Numbered(records), "values")
}

func idempotent(config *sarama.Config) {
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
}

// For requests that this version of Kafka has.
func (c *compat) since(version sarama.KafkaVersion, name string, body func()) {
	if c.version.IsAtLeast(version) {
		Run(name, body)
	} else {
		Skip("newer than this version of Kafka", name)
	}
}

func (c *compat) producing() {
	codecs := []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4}
	produce := func(codec sarama.CompressionCodec) func() {
		return func() {
			c.produceAndRead(codec.String(), func(config *sarama.Config) { config.Producer.Compression = codec })
		}
	}
	for _, codec := range codecs {
		Run("produce "+codec.String(), produce(codec))
	}
	c.since(sarama.V2_1_0_0, "produce zstd", produce(sarama.CompressionZSTD))
	acks := map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}
	for name, each := range acks {
		Run("acks "+name, func() {
			c.produceAndRead("acks-"+name, func(config *sarama.Config) { config.Producer.RequiredAcks = each })
		})
	}
	Run("keys, headers, nulls", func() {
		topic := c.topic("shapes", 1)
		headers := []sarama.RecordHeader{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("a"), Value: []byte("2")}}
		key, value := sarama.StringEncoder("k"), sarama.StringEncoder("v")
		c.send(c.config(), &sarama.ProducerMessage{Topic: topic, Key: key, Value: value, Headers: headers},
			&sarama.ProducerMessage{Topic: topic, Key: key})
		c.send(c.config(), &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("")})
		got := c.read(topic, 0, 3)
		Same(len(got), 3, "messages")
		Same(string(got[0].Key)+string(got[0].Headers[1].Value), "k2", "key and headers")
		Same(got[1].Value == nil && string(got[1].Key) == "k", true, "a null value")
		Same(got[2].Key == nil && got[2].Value != nil, true, "a null key, an empty value")
	})
	Run("large batch", func() {
		topic := c.topic("large", 1)
		sent := make([]string, 3000)
		for i := range sent {
			sent[i] = fmt.Sprint(i, strings.Repeat("x", 900))
		}
		config := c.config()
		config.Producer.Flush.Bytes, config.Producer.Flush.Frequency = 900_000, 200*time.Millisecond
		c.send(config, messagesOf(topic, sent)...)
		Same(slices.Equal(valuesOf(c.read(topic, 0, 3000)), sent), true, "3000 records of 900 bytes")
	})
	Run("idempotent producer", func() { c.produceAndRead("idempotent", idempotent) })
}

func (c *compat) offsets() {
	topic := c.topic("offsets", 1)
	for i, value := range Numbered(10) {
		at := time.UnixMilli(int64(1000 * (i + 1)))
		c.send(c.config(), &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value), Timestamp: at})
	}
	client := Must(sarama.NewClient(c.bootstrap, c.config()))
	defer client.Close()
	Run("consume from an offset", func() {
		SameText(valuesOf(c.read(topic, 7, 3)), []string{"v7", "v8", "v9"}, "values")
	})
	Run("consume from a time", func() {
		at := Must(client.GetOffset(topic, 0, 4500))
		Same(at, 4, "offset of 4500")
		SameText(valuesOf(c.read(topic, at, 1)), []string{"v4"}, "value there")
	})
	Run("list offsets", func() {
		Same(Must(client.GetOffset(topic, 0, sarama.OffsetOldest)), 0, "oldest")
		Same(Must(client.GetOffset(topic, 0, sarama.OffsetNewest)), 10, "newest")
	})
}

// A member of a group: it notes its claims and what it has seen.
type member struct {
	lock   *sync.Mutex
	claims int
	seen   map[string]int
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.claims = 0
	for _, partitions := range session.Claims() {
		m.claims += len(partitions)
	}
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, is := <-claim.Messages():
			if !is {
				return nil
			}
			m.lock.Lock()
			m.seen[fmt.Sprint(message.Partition, "/", message.Offset)]++
			session.MarkMessage(message, "")
			m.lock.Unlock()
			if len(claim.Messages()) == 0 {
				session.Commit()
			}
		}
	}
}

// Joins until the answer is called.
func (c *compat) join(group, topic string, m *member) func() {
	members := Must(sarama.NewConsumerGroup(c.bootstrap, group, c.config()))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := members.Consume(ctx, []string{topic}, m); err != nil && !errors.Is(err, context.Canceled) {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	return func() {
		cancel()
		Ok(<-ended)
		Ok(members.Close())
	}
}

func (c *compat) groups() {
	topic, group := c.topic("group", 4), c.run+"-classic"
	var lock sync.Mutex
	seen := map[string]int{}
	has := func(condition func() bool) func() bool {
		return func() bool {
			lock.Lock()
			defer lock.Unlock()
			return condition()
		}
	}
	Run("group: two members", func() {
		a, b := &member{lock: &lock, seen: seen}, &member{lock: &lock, seen: seen}
		leave := []func(){c.join(group, topic, a), c.join(group, topic, b)}
		Until("two partitions each", has(func() bool { return a.claims == 2 && b.claims == 2 }))
		c.send(c.config(), messagesOf(topic, Numbered(400))...)
		Until("all read", has(func() bool { return len(seen) == 400 }))
		for _, each := range leave {
			each()
		}
	})
	c.send(c.config(), messagesOf(topic, Numbered(100))...)
	Run("group: resume", func() {
		leave := c.join(group, topic, &member{lock: &lock, seen: seen})
		Until("all read", has(func() bool { return len(seen) == 500 }))
		leave()
		Same(slices.Max(slices.Collect(maps.Values(seen))), 1, "times a record was read")
	})
	Run("committed offsets", func() {
		listed := Must(c.admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2, 3}}))
		sum := int64(0)
		for partition := range int32(4) {
			sum += max(0, listed.GetBlock(topic, partition).Offset)
		}
		Same(sum, 500, "sum of all")
	})
	Skip("not in this client", "group: KIP-848")
}

func main() {
	as := flag.String("as", sarama.MaxVersion.String(), "the version of Kafka whose requests are sent")
	flag.Parse()
	c := &compat{
		bootstrap: flag.Args(), run: fmt.Sprintf("sarama-%d", time.Now().UnixNano()),
		version: Must(sarama.ParseKafkaVersion(*as)),
	}
	Version("github.com/IBM/sarama")
	c.admin = Must(sarama.NewClusterAdmin(c.bootstrap, c.config()))
	Run("metadata", func() {
		topic := c.topic("metadata", 3)
		described := Must(c.admin.DescribeTopics([]string{topic}))
		Same(len(described[0].Partitions), 3, "partitions")
		_, is := Must(c.admin.ListTopics())[topic]
		Same(is, true, "listed")
	})
	c.producing()
	c.offsets()
	c.groups()
	c.transactions()
	c.administration()
}
