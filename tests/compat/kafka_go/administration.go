// What kafka.Client offers beyond what the other behaviours need.
package main

import (
	"errors"

	. "skerry/compat/behaviours"

	"github.com/segmentio/kafka-go"
)

func (c *compat) partitions(topic string) int {
	seen := Must(c.client.Metadata(c.ctx, &kafka.MetadataRequest{Topics: []string{topic}}))
	if seen.Topics[0].Error != nil {
		return 0
	}
	return len(seen.Topics[0].Partitions)
}

func (c *compat) adminConfigs() {
	topic := c.topic("admin-configs", 1)
	alter := func(value string) error {
		configs := []kafka.IncrementalAlterConfigsRequestConfig{{Name: "retention.ms", Value: value}}
		asked := kafka.IncrementalAlterConfigsRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, Configs: configs}
		return Must(c.client.IncrementalAlterConfigs(c.ctx, &kafka.IncrementalAlterConfigsRequest{
			Resources: []kafka.IncrementalAlterConfigsRequestResource{asked},
		})).Resources[0].Error
	}
	Ok(alter("7200000"))
	asked := kafka.DescribeConfigRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
	}
	shown := Must(c.client.DescribeConfigs(c.ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{asked},
	}))
	Same(shown.Resources[0].ConfigEntries[0].ConfigValue, "7200000", "retention.ms")
	Same(errors.Is(alter("x"), kafka.InvalidConfiguration), true, "a wrong value is refused")
}

func (c *compat) adminGroups() {
	topic, group := c.topic("admin-groups", 2), c.run+"-admin-group"
	commits := map[string][]kafka.OffsetCommit{topic: {{Partition: 0, Offset: 1}, {Partition: 1, Offset: 1}}}
	Must(c.client.OffsetCommit(c.ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: commits}))
	Run("admin: delete offsets", func() {
		deleted := Must(c.client.OffsetDelete(c.ctx, &kafka.OffsetDeleteRequest{
			GroupID: group, Topics: map[string][]int{topic: {0}},
		}))
		Ok(deleted.Topics[topic][0].Error)
		left := Must(c.client.OffsetFetch(c.ctx, &kafka.OffsetFetchRequest{
			GroupID: group, Topics: map[string][]int{topic: {0, 1}},
		})).Topics[topic]
		SameText([]int64{left[0].CommittedOffset, left[1].CommittedOffset}, []int64{-1, 1}, "offsets")
	})
	isListed := func() bool {
		for _, each := range Must(c.client.ListGroups(c.ctx, &kafka.ListGroupsRequest{})).Groups {
			if each.GroupID == group {
				return true
			}
		}
		return false
	}
	Same(isListed(), true, "listed")
	deleted := Must(c.client.DeleteGroups(c.ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}}))
	Ok(deleted.Errors[group])
	Same(isListed(), false, "listed after it was deleted")
}

func (c *compat) adminQuotas() {
	entity := []kafka.AlterClientQuotaEntity{{EntityType: "client-id", EntityName: c.run}}
	alter := func(op kafka.AlterClientQuotaOps) {
		entry := kafka.AlterClientQuotaEntry{Entities: entity, Ops: []kafka.AlterClientQuotaOps{op}}
		altered := Must(c.client.AlterClientQuotas(c.ctx, &kafka.AlterClientQuotasRequest{
			Entries: []kafka.AlterClientQuotaEntry{entry},
		}))
		Ok(altered.Entries[0].Error)
	}
	describe := func() []kafka.DescribeClientQuotasResponseQuotas {
		component := kafka.DescribeClientQuotasRequestComponent{EntityType: "client-id", Match: c.run}
		return Must(c.client.DescribeClientQuotas(c.ctx, &kafka.DescribeClientQuotasRequest{
			Components: []kafka.DescribeClientQuotasRequestComponent{component},
		})).Entries
	}
	alter(kafka.AlterClientQuotaOps{Key: "producer_byte_rate", Value: 1e6})
	found := describe()
	Same(len(found) == 1 && found[0].Values[0].Value == 1e6, true, "stored")
	alter(kafka.AlterClientQuotaOps{Key: "producer_byte_rate", Remove: true})
	Same(len(describe()), 0, "left after it was removed")
}

func (c *compat) administration() {
	Run("admin: cluster", func() {
		conn := Must(kafka.Dial("tcp", c.bootstrap))
		defer conn.Close()
		Same(len(Must(conn.Brokers())), 1, "brokers")
		Must(conn.Controller())
		Must(c.client.ListPartitionReassignments(c.ctx, &kafka.ListPartitionReassignmentsRequest{}))
	})
	Run("admin: topics", func() {
		topic := c.topic("admin-topics", 2)
		again := Must(c.client.CreateTopics(c.ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
			{Topic: topic, NumPartitions: 2, ReplicationFactor: 1},
		}}))
		Same(errors.Is(again.Errors[topic], kafka.TopicAlreadyExists), true, "once more")
		deleted := Must(c.client.DeleteTopics(c.ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}}))
		Ok(deleted.Errors[topic])
		Until("it is gone", func() bool { return c.partitions(topic) == 0 })
	})
	Run("admin: partitions", func() {
		topic := c.topic("admin-partitions", 2)
		made := Must(c.client.CreatePartitions(c.ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: 5}},
		}))
		Ok(made.Errors[topic])
		Until("five partitions", func() bool { return c.partitions(topic) == 5 })
	})
	Run("admin: configs", c.adminConfigs)
	Run("admin: groups", c.adminGroups)
	Run("admin: quotas", c.adminQuotas)
}
