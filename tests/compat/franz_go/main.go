// The behaviours of the matrix, with franz-go (kgo and kadm) against one broker. Usage: franz_go BOOTSTRAP
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const records = 500

type compat struct {
	ctx       context.Context
	bootstrap string
	run       string
	adm       *kadm.Client
}

func (c *compat) client(options ...kgo.Opt) *kgo.Client {
	fixed := []kgo.Opt{kgo.SeedBrokers(c.bootstrap), kgo.RecordRetries(20)}
	return Must(kgo.NewClient(append(fixed, options...)...))
}

func (c *compat) topic(name string, partitions int32) string {
	topic := c.run + "-" + name
	Must(c.adm.CreateTopic(c.ctx, partitions, -1, nil, topic))
	return topic
}

func recordsOf(topic string, values []string) []*kgo.Record {
	made := make([]*kgo.Record, len(values))
	for i, value := range values {
		made[i] = &kgo.Record{Topic: topic, Value: []byte(value)}
	}
	return made
}

func (c *compat) send(topic string, values []string, options ...kgo.Opt) {
	client := c.client(options...)
	defer client.Close()
	Ok(client.ProduceSync(c.ctx, recordsOf(topic, values)...).FirstErr())
}

// Polls until there are `count` records; with what there is when the time is over.
func (c *compat) poll(client *kgo.Client, count int, wait time.Duration) []*kgo.Record {
	ctx, cancel := context.WithTimeout(c.ctx, wait)
	defer cancel()
	var got []*kgo.Record
	for len(got) < count && ctx.Err() == nil {
		fetches := client.PollRecords(ctx, count-len(got))
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				Fail("fetch: %v", err)
			}
		})
		got = append(got, fetches.Records()...)
	}
	return got
}

func (c *compat) reader(topic string, from kgo.Offset, options ...kgo.Opt) *kgo.Client {
	at := map[string]map[int32]kgo.Offset{topic: {0: from}}
	return c.client(append(options, kgo.ConsumePartitions(at))...)
}

func (c *compat) read(topic string, from kgo.Offset, count int, options ...kgo.Opt) []*kgo.Record {
	client := c.reader(topic, from, options...)
	defer client.Close()
	return c.poll(client, count, 30*time.Second)
}

func valuesOf(records []*kgo.Record) []string {
	values := make([]string, len(records))
	for i, record := range records {
		values[i] = string(record.Value)
	}
	return values
}

func (c *compat) produceAndRead(name string, options ...kgo.Opt) {
	topic := c.topic(name, 1)
	c.send(topic, Numbered(records), options...)
	SameText(valuesOf(c.read(topic, kgo.NewOffset().AtStart(), records)), Numbered(records), "values")
}

func (c *compat) producing() {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		Run("produce "+name, func() { c.produceAndRead(name, kgo.ProducerBatchCompression(codec)) })
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}
	for name, each := range acks {
		Run("acks "+name, func() { c.produceAndRead("acks-"+name, kgo.RequiredAcks(each), kgo.DisableIdempotentWrite()) })
	}
	Run("keys, headers, nulls", func() {
		topic := c.topic("shapes", 1)
		headers := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "n"}}
		client := c.client()
		defer client.Close()
		for _, record := range []*kgo.Record{
			{Topic: topic, Key: []byte("k"), Value: []byte("v"), Headers: headers},
			{Topic: topic, Key: []byte("k")},
			{Topic: topic, Value: []byte{}},
		} {
			Ok(client.ProduceSync(c.ctx, record).FirstErr())
		}
		got := c.read(topic, kgo.NewOffset().AtStart(), 3)
		Same(len(got), 3, "records")
		SameText(got[0].Headers, headers, "headers")
		Same(got[1].Value == nil && string(got[1].Key) == "k", true, "a null value")
		Same(got[2].Key == nil && got[2].Value != nil, true, "a null key, an empty value")
	})
	Run("large batch", func() {
		topic := c.topic("large", 1)
		sent := make([]string, 3000)
		for i := range sent {
			sent[i] = fmt.Sprint(i, strings.Repeat("x", 900))
		}
		c.send(topic, sent, kgo.ProducerBatchMaxBytes(1_000_000), kgo.ProducerLinger(200*time.Millisecond))
		Same(slices.Equal(valuesOf(c.read(topic, kgo.NewOffset().AtStart(), 3000)), sent), true, "3000 records of 900 bytes")
		c.send(topic, []string{strings.Repeat("y", 990_000)})
		Same(len(c.read(topic, kgo.NewOffset().At(3000), 1)[0].Value), 990_000, "a large record")
	})
	Run("idempotent producer", func() { c.produceAndRead("idempotent", kgo.ProducerBatchMaxBytes(1000)) })
}

func (c *compat) offsets() {
	topic := c.topic("offsets", 1)
	client := c.client()
	defer client.Close()
	for i, value := range Numbered(10) {
		record := &kgo.Record{Topic: topic, Value: []byte(value), Timestamp: time.UnixMilli(int64(1000 * (i + 1)))}
		Ok(client.ProduceSync(c.ctx, record).FirstErr())
	}
	Run("consume from an offset", func() {
		SameText(valuesOf(c.read(topic, kgo.NewOffset().At(7), 3)), []string{"v7", "v8", "v9"}, "values")
	})
	Run("consume from a time", func() {
		SameText(valuesOf(c.read(topic, kgo.NewOffset().AfterMilli(4500), 1)), []string{"v4"}, "value")
	})
	Run("list offsets", func() {
		at := func(listed kadm.ListedOffsets, err error) int64 {
			offset, _ := Must(listed, err).Lookup(topic, 0)
			Ok(offset.Err)
			return offset.Offset
		}
		Same(at(c.adm.ListStartOffsets(c.ctx, topic)), 0, "start")
		Same(at(c.adm.ListEndOffsets(c.ctx, topic)), 10, "end")
		Same(at(c.adm.ListCommittedOffsets(c.ctx, topic)), 10, "last stable")
		Same(at(c.adm.ListOffsetsAfterMilli(c.ctx, 4001, topic)), 4, "by time")
		Same(at(c.adm.ListMaxTimestampOffsets(c.ctx, topic)), 9, "of the greatest time")
	})
}

// Two members share four partitions and commit; another goes on where they stopped.
func (c *compat) groupFlow(name string, more ...kgo.Opt) (topic, group string) {
	topic, group = c.topic(name, 4), c.run+"-"+name
	var lock sync.Mutex
	assigned := map[int]int{}
	options := append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300 * time.Millisecond),
	}, more...)
	members := make([]*kgo.Client, 2)
	for i := range members {
		count := func(step int) func(context.Context, *kgo.Client, map[string][]int32) {
			return func(_ context.Context, _ *kgo.Client, change map[string][]int32) {
				lock.Lock()
				defer lock.Unlock()
				assigned[i] += step * len(change[topic])
			}
		}
		members[i] = c.client(append(options, kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)))...)
		defer members[i].Close()
	}
	Until("two partitions each", func() bool {
		for _, member := range members {
			c.poll(member, 1, 20*time.Millisecond)
		}
		lock.Lock()
		defer lock.Unlock()
		return assigned[0] == 2 && assigned[1] == 2
	})
	c.send(topic, Numbered(400))
	seen := map[string]bool{}
	take := func(got []*kgo.Record) {
		for _, record := range got {
			seen[fmt.Sprint(record.Partition, "/", record.Offset)] = true
		}
	}
	Until("all read", func() bool {
		for _, member := range members {
			take(c.poll(member, 50, 100*time.Millisecond))
		}
		return len(seen) == 400
	})
	for _, member := range members {
		Ok(member.CommitUncommittedOffsets(c.ctx))
		member.Close()
	}
	c.send(topic, Numbered(100))
	third := c.client(options...)
	defer third.Close()
	got := c.poll(third, 100, 30*time.Second)
	take(got)
	SameText([]int{len(got), len(seen)}, []int{100, 500}, "records after the commits, in all")
	Ok(third.CommitUncommittedOffsets(c.ctx))
	return topic, group
}

func (c *compat) groups() {
	var group string
	Run("group: two members", func() { _, group = c.groupFlow("classic") })
	Run("group: resume", func() {
		Same(group != "", true, "two members")
		lag := Must(c.adm.Lag(c.ctx, group))[group]
		Same(lag.Lag.Total(), 0, "lag")
	})
	Run("committed offsets", func() {
		var sum int64
		Must(c.adm.FetchOffsets(c.ctx, group)).Each(func(offset kadm.OffsetResponse) { sum += offset.At })
		Same(sum, 500, "sum of all")
	})
	Run("group: KIP-848", func() {
		_, group := c.groupFlow("kip848", kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
		listed := Must(c.adm.ListGroupsByType(c.ctx, []string{"consumer"}))
		Same(listed[group].Group, group, "of the new type")
	})
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 140*time.Second)
	defer cancel()
	c := &compat{ctx: ctx, bootstrap: os.Args[1], run: fmt.Sprintf("franz-%d", time.Now().UnixNano())}
	Version("github.com/twmb/franz-go")
	client := c.client()
	defer client.Close()
	c.adm = kadm.NewClient(client)
	Run("metadata", func() {
		meta := Must(c.adm.BrokerMetadata(c.ctx))
		Same(len(meta.Brokers) == 1 && meta.Cluster != "", true, "one broker, a cluster id")
		topic := c.topic("metadata", 3)
		Same(len(Must(c.adm.ListTopics(c.ctx, topic))[topic].Partitions), 3, "partitions")
	})
	c.producing()
	c.offsets()
	c.groups()
	c.transactions()
	c.administration()
}

func isError(err error, expected *kerr.Error, what string) {
	if !errors.Is(err, expected) {
		Fail("%s: expected %v, got %v", what, expected, err)
	}
}
