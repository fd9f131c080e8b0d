// What kadm offers beyond what the other behaviours need.
package main

import (
	"time"

	. "skerry/compat/behaviours"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func ptr(text string) *string { return &text }

func (c *compat) adminTopics() {
	topic := c.run + "-admin-topics"
	made := Must(c.adm.CreateTopic(c.ctx, 3, -1, map[string]*string{"retention.ms": ptr("3600000")}, topic))
	Same(made.ID != kadm.TopicID{}, true, "an id")
	_, err := c.adm.CreateTopic(c.ctx, 3, -1, nil, topic)
	isError(err, kerr.TopicAlreadyExists, "once more")
	Same(Must(c.adm.ListTopics(c.ctx, topic))[topic].ID, made.ID, "the id stays")
	Must(c.adm.DeleteTopic(c.ctx, topic))
	Same(Must(c.adm.ListTopics(c.ctx)).Has(topic), false, "deleted")
}

func (c *compat) adminConfigs() {
	topic := c.topic("admin-configs", 1)
	alter := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: ptr("7200000")}}
	for _, each := range Must(c.adm.AlterTopicConfigs(c.ctx, alter, topic)) {
		Ok(each.Err)
	}
	shown := Must(Must(c.adm.DescribeTopicConfigs(c.ctx, topic)).On(topic, nil))
	for _, config := range shown.Configs {
		if config.Key == "retention.ms" {
			Same(config.MaybeValue(), "7200000", "retention.ms")
		}
	}
	wrong := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: ptr("x")}}
	for _, each := range Must(c.adm.AlterTopicConfigs(c.ctx, wrong, topic)) {
		isError(each.Err, kerr.InvalidConfig, "a wrong value")
	}
}

func (c *compat) adminGroups() {
	topic, group := c.topic("admin-groups", 2), c.run+"-admin-group"
	c.send(topic, Numbered(10))
	member := c.client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	Same(len(c.poll(member, 10, 30*time.Second)), 10, "records")
	Ok(member.CommitUncommittedOffsets(c.ctx))
	described := Must(c.adm.DescribeGroups(c.ctx, group))[group]
	Same(described.State, "Stable", "state")
	Same(len(described.Members), 1, "members")
	_, err := c.adm.DeleteGroup(c.ctx, group)
	isError(err, kerr.NonEmptyGroup, "deleted with a member")
	member.Close()
	Run("admin: delete offsets", func() {
		var offsets kadm.Offsets
		for partition := range int32(2) {
			offsets.AddOffset(topic, partition, 1, -1)
		}
		Ok(c.adm.CommitAllOffsets(c.ctx, group, offsets))
		var first kadm.TopicsSet
		first.Add(topic, 0)
		Ok(Must(c.adm.DeleteOffsets(c.ctx, group, first)).Error())
		left := Must(c.adm.FetchOffsets(c.ctx, group))
		_, isLeft := left.Lookup(topic, 0)
		_, isKept := left.Lookup(topic, 1)
		Same(!isLeft && isKept, true, "one of two is gone")
	})
	Same(Must(c.adm.ListGroups(c.ctx))[group].Group, group, "listed")
	Must(c.adm.DeleteGroup(c.ctx, group))
	Same(Must(c.adm.ListGroups(c.ctx))[group].Group, "", "deleted")
}

func (c *compat) openTransaction() {
	topic, id := c.topic("admin-open", 1), c.run+"-admin-open"
	client := c.transactional("admin-open")
	defer client.Close()
	Ok(client.BeginTransaction())
	Ok(client.ProduceSync(c.ctx, recordsOf(topic, []string{"open"})...).FirstErr())
	var set kadm.TopicsSet
	set.Add(topic, 0)
	Run("admin: describe producers", func() {
		producers := Must(c.adm.DescribeProducers(c.ctx, set)).SortedProducers()
		Same(len(producers), 1, "producers")
		Same(producers[0].CurrentTxnStartOffset, 0, "start of the transaction")
	})
	Run("admin: describe transactions", func() {
		open := Must(c.adm.DescribeTransactions(c.ctx, id))[id]
		Same(open.State, "Ongoing", "state")
		SameText(open.Topics, set, "partitions")
		Same(Must(c.adm.ListTransactions(c.ctx, nil, []string{"Ongoing"}))[id].TxnID, id, "listed")
		state := Must(c.adm.DescribeProducers(c.ctx, set)).SortedProducers()[0]
		marker := kadm.TxnMarkers{
			ProducerID: state.ProducerID, ProducerEpoch: state.ProducerEpoch, CoordinatorEpoch: max(0, state.CoordinatorEpoch),
			Topics: set,
		}
		Must(c.adm.WriteTxnMarkers(c.ctx, marker))
		c.send(topic, Numbered(1))
		SameText(c.committed(topic, 1), []string{"v0"}, "after an abort marker")
	})
	_ = client.EndTransaction(c.ctx, kgo.TryAbort)
}

func (c *compat) adminQuotas() {
	entity := kadm.ClientQuotaEntity{{Type: "client-id", Name: ptr(c.run)}}
	alter := func(op kadm.AlterClientQuotaOp) {
		entry := kadm.AlterClientQuotaEntry{Entity: entity, Ops: []kadm.AlterClientQuotaOp{op}}
		for _, each := range Must(c.adm.AlterClientQuotas(c.ctx, []kadm.AlterClientQuotaEntry{entry})) {
			Ok(each.Err)
		}
	}
	describe := func() kadm.DescribedClientQuotas {
		filter := []kadm.DescribeClientQuotaComponent{{Type: "client-id", MatchName: ptr(c.run)}}
		return Must(c.adm.DescribeClientQuotas(c.ctx, false, filter))
	}
	alter(kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Value: 1e6})
	found := describe()
	Same(len(found) == 1 && found[0].Values[0].Value == 1e6, true, "stored")
	alter(kadm.AlterClientQuotaOp{Key: "producer_byte_rate", Remove: true})
	Same(len(describe()), 0, "removed")
}

func (c *compat) administration() {
	Run("admin: cluster", func() {
		meta := Must(c.adm.BrokerMetadata(c.ctx))
		Same(meta.Controller, meta.Brokers[0].NodeID, "controller")
		Must(c.adm.ListPartitionReassignments(c.ctx, nil))
	})
	Run("admin: topics", c.adminTopics)
	Run("admin: partitions", func() {
		topic := c.topic("admin-partitions", 2)
		Must(c.adm.UpdatePartitions(c.ctx, 5, topic))
		Same(len(Must(c.adm.ListTopics(c.ctx, topic))[topic].Partitions), 5, "partitions")
	})
	Run("admin: configs", c.adminConfigs)
	Run("admin: delete records", func() {
		topic := c.topic("admin-records", 1)
		c.send(topic, Numbered(10))
		var offsets kadm.Offsets
		offsets.AddOffset(topic, 0, 4, -1)
		Same(Must(c.adm.DeleteRecords(c.ctx, offsets))[topic][0].LowWatermark, 4, "low watermark")
	})
	Run("admin: groups", c.adminGroups)
	c.openTransaction()
	Run("admin: quotas", c.adminQuotas)
	Run("admin: log dirs", func() {
		topic := c.topic("admin-dirs", 1)
		c.send(topic, Numbered(100))
		size := int64(0)
		Must(c.adm.DescribeAllLogDirs(c.ctx, nil)).Each(func(dir kadm.DescribedLogDir) {
			if partition, is := dir.Topics.Lookup(topic, 0); is {
				size += partition.Size
			}
		})
		Same(size > 300, true, "bytes of the partition")
	})
}
