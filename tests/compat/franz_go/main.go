// The main flows of franz-go (kgo and kadm) against one broker. Prints a line per flow; fails at the first wrong one.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const records = 300

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

type compat struct {
	ctx       context.Context
	bootstrap string
	topic     string
	group     string
	adm       *kadm.Client
}

func (c *compat) client(options ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.bootstrap)}, options...)...))
}

func ptr(text string) *string { return &text }

func (c *compat) topics() {
	meta := must(c.adm.BrokerMetadata(c.ctx))
	check("broker metadata", len(meta.Brokers) == 1 && meta.Cluster != "")
	configs := map[string]*string{"retention.ms": ptr("3600000")}
	made := must(c.adm.CreateTopic(c.ctx, 3, -1, configs, c.topic))
	check("create topic, with its id", made.ID != kadm.TopicID{} && made.NumPartitions == 3, made)
	_, err := c.adm.CreateTopic(c.ctx, 3, -1, nil, c.topic)
	check("create topic again", errors.Is(err, kerr.TopicAlreadyExists), err)
	must(c.adm.UpdatePartitions(c.ctx, 4, c.topic))
	described := must(c.adm.ListTopics(c.ctx, c.topic))[c.topic]
	check("update partitions", len(described.Partitions) == 4)
	check("the id stays", described.ID == made.ID)
	alter := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: ptr("7200000")}}
	must(c.adm.AlterTopicConfigs(c.ctx, alter, c.topic))
	shown := must(must(c.adm.DescribeTopicConfigs(c.ctx, c.topic)).On(c.topic, nil))
	retention := ""
	for _, config := range shown.Configs {
		if config.Key == "retention.ms" {
			retention = config.MaybeValue()
		}
	}
	check("alter and describe configs", retention == "7200000", retention)
}

func (c *compat) produce(name string, codec kgo.CompressionCodec, options ...kgo.Opt) {
	options = append(options, kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(c.topic))
	client := c.client(options...)
	defer client.Close()
	sent := make([]*kgo.Record, records)
	for i := range sent {
		sent[i] = &kgo.Record{
			Key:     fmt.Appendf(nil, "k%d", i),
			Value:   fmt.Appendf(nil, "%s %d", name, i),
			Headers: []kgo.RecordHeader{{Key: "producer", Value: []byte(name)}},
		}
		if i%10 == 0 {
			sent[i].Value = nil
		}
	}
	err := client.ProduceSync(c.ctx, sent...).FirstErr()
	check("produce "+name, err == nil, err)
}

func (c *compat) read(expected int) {
	client := c.client(kgo.ConsumeTopics(c.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	whole, tombstones := 0, 0
	for seen := 0; seen < expected; {
		fetches := client.PollFetches(c.ctx)
		if failed := fetches.Errors(); len(failed) > 0 {
			check("fetch without errors", false, failed)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			seen++
			if record.Value == nil {
				tombstones++
			} else if len(record.Headers) == 1 && bytes.HasPrefix(record.Value, record.Headers[0].Value) {
				whole++
			}
		})
	}
	check("read all: values and headers", whole == expected*9/10, whole)
	check("read all: null values", tombstones == expected/10, tombstones)
}

// Two members with the cooperative balancer; both are shut while records are left, a third goes on.
func (c *compat) groupFlow(expected int) {
	options := []kgo.Opt{
		kgo.ConsumerGroup(c.group), kgo.ConsumeTopics(c.topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(200 * time.Millisecond),
	}
	var lock sync.Mutex
	assigned := map[int]int{}
	members := make([]*kgo.Client, 2)
	for i := range members {
		count := func(step int) func(context.Context, *kgo.Client, map[string][]int32) {
			return func(_ context.Context, _ *kgo.Client, change map[string][]int32) {
				lock.Lock()
				defer lock.Unlock()
				assigned[i] += step * len(change[c.topic])
			}
		}
		members[i] = c.client(append(options, kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)))...)
	}
	for range 300 {
		lock.Lock()
		both := assigned[0] == 2 && assigned[1] == 2
		lock.Unlock()
		if both {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	lock.Lock()
	check("two members share four partitions", assigned[0] == 2 && assigned[1] == 2, assigned)
	lock.Unlock()
	described := must(c.adm.DescribeGroups(c.ctx, c.group))[c.group]
	check("describe groups", described.State == "Stable" && len(described.Members) == 2, described)
	done := 0
	for _, member := range members {
		fetches := member.PollRecords(c.ctx, 100)
		done += fetches.NumRecords()
		check("commit", member.CommitUncommittedOffsets(c.ctx) == nil)
		member.Close()
	}
	third := c.client(options...)
	for done < expected {
		done += third.PollFetches(c.ctx).NumRecords()
	}
	check("another member goes on where they stopped", done == expected, done)
	check("commit the rest", third.CommitUncommittedOffsets(c.ctx) == nil)
	third.Close()
	lag := must(c.adm.Lag(c.ctx, c.group))[c.group]
	check("no lag is left", lag.Lag.Total() == 0, lag.Lag.Total())
}

func (c *compat) offsets(expected int) {
	total := func(offsets kadm.ListedOffsets, err error) int64 {
		var sum int64
		must(offsets, err).Each(func(offset kadm.ListedOffset) { sum += offset.Offset })
		return sum
	}
	check("start offsets", total(c.adm.ListStartOffsets(c.ctx, c.topic)) == 0)
	check("end offsets", total(c.adm.ListEndOffsets(c.ctx, c.topic)) == int64(expected))
	check("offsets by time", total(c.adm.ListOffsetsAfterMilli(c.ctx, 1, c.topic)) == 0)
	committed := must(c.adm.FetchOffsets(c.ctx, c.group))
	var sum int64
	committed.Each(func(offset kadm.OffsetResponse) { sum += offset.At })
	check("committed offsets", sum == int64(expected), sum)
}

func (c *compat) remove() {
	listed := must(c.adm.ListGroups(c.ctx))
	check("list groups", listed[c.group].Group == c.group)
	must(c.adm.DeleteGroup(c.ctx, c.group))
	check("delete group", must(c.adm.ListGroups(c.ctx))[c.group].Group == "")
	must(c.adm.DeleteTopic(c.ctx, c.topic))
	check("delete topic", !must(c.adm.ListTopics(c.ctx)).Has(c.topic))
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	name := fmt.Sprintf("franz-%d", time.Now().UnixNano())
	c := &compat{ctx: ctx, bootstrap: os.Args[1], topic: name, group: "group-" + name}
	client := c.client()
	defer client.Close()
	c.adm = kadm.NewClient(client)
	c.topics()
	plain := []kgo.Opt{kgo.DisableIdempotentWrite()}
	c.produce("none", kgo.NoCompression())
	c.produce("gzip", kgo.GzipCompression())
	c.produce("snappy", kgo.SnappyCompression())
	c.produce("lz4 acks=1", kgo.Lz4Compression(), append(plain, kgo.RequiredAcks(kgo.LeaderAck()))...)
	c.produce("zstd acks=0", kgo.ZstdCompression(), append(plain, kgo.RequiredAcks(kgo.NoAck()))...)
	c.read(5 * records)
	c.groupFlow(5 * records)
	c.offsets(5 * records)
	c.remove()
	fmt.Printf("%d passed, 0 failed\n", passed)
}
