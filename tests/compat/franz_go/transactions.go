// Transactions: what others see of them, who may go on, and offsets that belong to them.
package main

import (
	"errors"
	"time"

	. "skerry/compat/behaviours"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var committedOnly = kgo.FetchIsolationLevel(kgo.ReadCommitted())

func (c *compat) transaction(client *kgo.Client, topic string, values []string, commit kgo.TransactionEndTry) {
	Ok(client.BeginTransaction())
	Ok(client.ProduceSync(c.ctx, recordsOf(topic, values)...).FirstErr())
	Ok(client.EndTransaction(c.ctx, commit))
}

func (c *compat) transactional(name string) *kgo.Client {
	return c.client(kgo.TransactionalID(c.run + "-" + name))
}

func (c *compat) committed(topic string, count int) []string {
	return valuesOf(c.read(topic, kgo.NewOffset().AtStart(), count, committedOnly))
}

func (c *compat) isolation() {
	topic := c.topic("txn-open", 1)
	client := c.transactional("open")
	defer client.Close()
	Ok(client.BeginTransaction())
	Ok(client.ProduceSync(c.ctx, recordsOf(topic, []string{"open"})...).FirstErr())
	c.send(topic, Numbered(2))
	reader := c.reader(topic, kgo.NewOffset().AtStart(), committedOnly)
	defer reader.Close()
	Same(len(c.poll(reader, 1, 1500*time.Millisecond)), 0, "seen before the end")
	Same(len(c.read(topic, kgo.NewOffset().AtStart(), 3)), 3, "seen by others")
	Ok(client.EndTransaction(c.ctx, kgo.TryCommit))
	SameText(valuesOf(c.poll(reader, 3, 30*time.Second)), []string{"open", "v0", "v1"}, "seen after it")
}

func (c *compat) fencing() {
	topic := c.topic("txn-fence", 1)
	old := c.transactional("fence")
	defer old.Close()
	Ok(old.BeginTransaction())
	Ok(old.ProduceSync(c.ctx, recordsOf(topic, []string{"old"})...).FirstErr())
	young := c.transactional("fence")
	defer young.Close()
	c.transaction(young, topic, []string{"new"}, kgo.TryCommit)
	err := old.EndTransaction(c.ctx, kgo.TryCommit)
	if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		Fail("the old producer: %v", err)
	}
	SameText(c.committed(topic, 1), []string{"new"}, "committed")
}

func (c *compat) transform() {
	in, out, group := c.topic("txn-in", 1), c.topic("txn-out", 1), c.run+"-transform"
	c.send(in, Numbered(6))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryCommit} {
		session := Must(kgo.NewGroupTransactSession(
			kgo.SeedBrokers(c.bootstrap), kgo.TransactionalID(group), kgo.ConsumerGroup(group), kgo.ConsumeTopics(in),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), committedOnly, kgo.RequireStableFetchOffsets(),
		))
		got := session.PollRecords(c.ctx, 3).Records()
		Same(len(got), 3, "records of a poll")
		Ok(session.Begin())
		for _, record := range got {
			Ok(session.ProduceSync(c.ctx, &kgo.Record{Topic: out, Value: append(record.Value, '!')}).FirstErr())
		}
		committed := Must(session.End(c.ctx, commit))
		Same(committed, bool(commit), "committed")
		session.Close()
	}
	SameText(c.committed(out, 6), []string{"v0!", "v1!", "v2!", "v3!", "v4!", "v5!"}, "output")
	offset, _ := Must(c.adm.FetchOffsets(c.ctx, group)).Lookup(in, 0)
	Same(offset.At, 6, "committed offset")
}

func (c *compat) transactions() {
	Run("txn: commit", func() {
		topic := c.topic("txn-commit", 1)
		client := c.transactional("commit")
		defer client.Close()
		for range 3 {
			c.transaction(client, topic, Numbered(10), kgo.TryCommit)
		}
		Same(len(c.committed(topic, 30)), 30, "records")
	})
	Run("txn: abort", func() {
		topic := c.topic("txn-abort", 1)
		client := c.transactional("abort")
		defer client.Close()
		for _, value := range []string{"a", "b", "c", "d"} {
			c.transaction(client, topic, []string{value}, kgo.TransactionEndTry(value == "a" || value == "d"))
		}
		SameText(c.committed(topic, 2), []string{"a", "d"}, "read_committed")
		SameText(valuesOf(c.read(topic, kgo.NewOffset().AtStart(), 4)), []string{"a", "b", "c", "d"}, "all")
	})
	Run("txn: read_committed", c.isolation)
	Run("txn: fencing", c.fencing)
	Run("txn: consume-transform-produce", c.transform)
}
