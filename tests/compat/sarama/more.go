// Transactions, and what ClusterAdmin offers beyond what the other behaviours need.
package main

import (
	"errors"
	"time"

	. "skerry/compat/behaviours"

	"github.com/IBM/sarama"
)

func (c *compat) transactional(name string) sarama.SyncProducer {
	config := c.config()
	idempotent(config)
	config.Producer.Transaction.ID = c.run + "-" + name
	return Must(sarama.NewSyncProducer(c.bootstrap, config))
}

func transaction(producer sarama.SyncProducer, topic string, values []string, commit bool) {
	Ok(producer.BeginTxn())
	Ok(producer.SendMessages(messagesOf(topic, values)))
	if commit {
		Ok(producer.CommitTxn())
	} else {
		Ok(producer.AbortTxn())
	}
}

func (c *compat) transactions() {
	Run("txn: commit", func() {
		topic := c.topic("txn-commit", 1)
		producer := c.transactional("commit")
		defer producer.Close()
		for range 3 {
			transaction(producer, topic, Numbered(10), true)
		}
		Same(len(c.committed(topic, 30)), 30, "records")
	})
	Run("txn: abort", func() {
		topic := c.topic("txn-abort", 1)
		producer := c.transactional("abort")
		defer producer.Close()
		for _, value := range []string{"a", "b", "c", "d"} {
			transaction(producer, topic, []string{value}, value == "a" || value == "d")
		}
		SameText(c.committed(topic, 2), []string{"a", "d"}, "read_committed")
		SameText(valuesOf(c.read(topic, 0, 4)), []string{"a", "b", "c", "d"}, "all")
	})
	Run("txn: read_committed", func() {
		topic := c.topic("txn-open", 1)
		producer := c.transactional("open")
		defer producer.Close()
		Ok(producer.BeginTxn())
		Ok(producer.SendMessages(messagesOf(topic, []string{"open"})))
		c.send(c.config(), messagesOf(topic, Numbered(2))...)
		Same(len(c.readFor(topic, 0, 1, sarama.ReadCommitted, 1500*time.Millisecond)), 0, "seen before the end")
		Same(len(c.read(topic, 0, 3)), 3, "seen by others")
		Ok(producer.CommitTxn())
		SameText(c.committed(topic, 3), []string{"open", "v0", "v1"}, "seen after it")
	})
	Run("txn: fencing", func() {
		topic := c.topic("txn-fence", 1)
		old := c.transactional("fence")
		defer old.Close()
		Ok(old.BeginTxn())
		Ok(old.SendMessages(messagesOf(topic, []string{"old"})))
		young := c.transactional("fence")
		defer young.Close()
		transaction(young, topic, []string{"new"}, true)
		Same(old.CommitTxn() != nil && old.TxnStatus()&sarama.ProducerTxnFlagInError != 0, true, "the old producer has failed")
		SameText(c.committed(topic, 1), []string{"new"}, "committed")
	})
	Run("txn: consume-transform-produce", c.transform)
}

func (c *compat) transform() {
	in, out, group := c.topic("txn-in", 1), c.topic("txn-out", 1), c.run+"-transform"
	c.send(c.config(), messagesOf(in, Numbered(6))...)
	at := func() int64 {
		block := Must(c.admin.ListConsumerGroupOffsets(group, map[string][]int32{in: {0}})).GetBlock(in, 0)
		return max(0, block.Offset)
	}
	producer := c.transactional("transform")
	defer producer.Close()
	for i, commit := range []bool{false, true, true} {
		// It cannot ask for stable offsets: the commit is seen once the markers are written.
		Until("the offset is committed", func() bool { return at() == int64(max(0, i-1)*3) })
		got := c.read(in, at(), 3)
		Ok(producer.BeginTxn())
		for _, message := range got {
			Ok(producer.SendMessages(messagesOf(out, []string{string(message.Value) + "!"})))
		}
		Ok(producer.AddMessageToTxn(got[2], group, nil))
		if commit {
			Ok(producer.CommitTxn())
		} else {
			Ok(producer.AbortTxn())
		}
	}
	SameText(c.committed(out, 6), []string{"v0!", "v1!", "v2!", "v3!", "v4!", "v5!"}, "output")
	Until("offset 6 is committed", func() bool { return at() == 6 })
}

func (c *compat) adminGroups() {
	topic, group := c.topic("admin-groups", 1), c.run+"-classic"
	described := Must(c.admin.DescribeConsumerGroups([]string{group}))
	Same(described[0].State, "Empty", "state")
	c.since(sarama.V2_4_0_0, "admin: delete offsets", func() {
		other := c.run + "-admin-group"
		offsets := map[string]map[int32]sarama.OffsetAndMetadata{topic: {0: {Offset: 1, LeaderEpoch: -1}}}
		Must(c.admin.AlterConsumerGroupOffsets(other, offsets, nil))
		Ok(c.admin.DeleteConsumerGroupOffset(other, topic, 0))
		left := Must(c.admin.ListConsumerGroupOffsets(other, map[string][]int32{topic: {0}}))
		Same(left.GetBlock(topic, 0).Offset, -1, "offset")
	})
	_, is := Must(c.admin.ListConsumerGroups())[group]
	Same(is, true, "listed")
	Ok(c.admin.DeleteConsumerGroup(group))
	_, is = Must(c.admin.ListConsumerGroups())[group]
	Same(is, false, "listed after it was deleted")
}

func (c *compat) adminConfigs() {
	topic, value, wrong := c.topic("admin-configs", 1), "7200000", "x"
	set := func(text *string) error {
		entries := map[string]sarama.IncrementalAlterConfigsEntry{
			"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: text},
		}
		return c.admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
	}
	Ok(set(&value))
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}
	Same(Must(c.admin.DescribeConfig(resource))[0].Value, "7200000", "retention.ms")
	Same(set(&wrong) != nil, true, "a wrong value is refused")
}

func (c *compat) adminQuotas() {
	entity := []sarama.QuotaEntityComponent{{
		EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Name: c.run,
	}}
	filter := []sarama.QuotaFilterComponent{{
		EntityType: sarama.QuotaEntityClientID, MatchType: sarama.QuotaMatchExact, Match: c.run,
	}}
	Ok(c.admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Value: 1e6}, false))
	found := Must(c.admin.DescribeClientQuotas(filter, false))
	Same(len(found) == 1 && found[0].Values["producer_byte_rate"] == 1e6, true, "stored")
	Ok(c.admin.AlterClientQuotas(entity, sarama.ClientQuotasOp{Key: "producer_byte_rate", Remove: true}, false))
	Same(len(Must(c.admin.DescribeClientQuotas(filter, false))), 0, "left after it was removed")
}

func (c *compat) logDirs() {
	topic := c.topic("admin-dirs", 1)
	c.send(c.config(), messagesOf(topic, Numbered(100))...)
	brokers, _, err := c.admin.DescribeCluster()
	Ok(err)
	size := int64(0)
	for _, dir := range Must(c.admin.DescribeLogDirs([]int32{brokers[0].ID()}))[brokers[0].ID()] {
		for _, each := range dir.Topics {
			if each.Topic == topic {
				size += each.Partitions[0].Size
			}
		}
	}
	Same(size > 300, true, "bytes of the partition")
}

func (c *compat) administration() {
	Run("admin: cluster", func() {
		brokers, controller, err := c.admin.DescribeCluster()
		Ok(err)
		Same(len(brokers) == 1 && brokers[0].ID() == controller, true, "one broker, the controller")
	})
	Run("admin: topics", func() {
		topic := c.topic("admin-topics", 2)
		err := c.admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false)
		Same(errors.Is(err, sarama.ErrTopicAlreadyExists), true, "once more")
		Ok(c.admin.DeleteTopic(topic))
		_, is := Must(c.admin.ListTopics())[topic]
		Same(is, false, "listed after it was deleted")
	})
	Run("admin: partitions", func() {
		topic := c.topic("admin-partitions", 2)
		Ok(c.admin.CreatePartitions(topic, 5, nil, false))
		Same(len(Must(c.admin.DescribeTopics([]string{topic}))[0].Partitions), 5, "partitions")
	})
	c.since(sarama.V2_3_0_0, "admin: configs", c.adminConfigs)
	Run("admin: delete records", func() {
		topic := c.topic("admin-records", 1)
		c.send(c.config(), messagesOf(topic, Numbered(10))...)
		Ok(c.admin.DeleteRecords(topic, map[int32]int64{0: 4}))
		Same(c.read(topic, sarama.OffsetOldest, 1)[0].Offset, 4, "first offset")
	})
	Run("admin: groups", c.adminGroups)
	c.since(sarama.V2_6_0_0, "admin: quotas", c.adminQuotas)
	if c.version.IsAtLeast(sarama.V2_0_0_0) {
		Run("admin: log dirs", c.logDirs)
	} else {
		Skip("sends a version that is gone since Kafka 4.0", "admin: log dirs")
	}
	Skip("not in this client", "admin: describe producers", "admin: describe transactions")
}
