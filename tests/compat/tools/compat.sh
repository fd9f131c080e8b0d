#!/usr/bin/env bash
# Kafka's own command line tools, each as its script would start it. Usage: tests/compat/tools/compat.sh CLIENTS BOOTSTRAP
set -uo pipefail
clients=$1
broker=$2
run="tools-$$-$RANDOM"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A tool by its class; it has a time limit, since some of them wait for ever.
tool() {
  local class=$1
  shift
  timeout 60 java -XX:TieredStopAtLevel=1 -Xshare:auto -Xmx256m -cp "$clients/tools/*" "$class" "$@" 2>&1
}

# The behaviour holds when what the command prints has all of the expected patterns.
behaviour() {
  local name=$1 got pattern
  shift
  got=$("$@")
  while IFS= read -r pattern; do
    if ! grep -Eq -- "$pattern" <<<"$got"; then
      printf '%s\tfail\tno %s in: %s\n' "$name" "$pattern" "$(tr '\n\t' '  ' <<<"$got" | cut -c 1-400)"
      return
    fi
  done <"$work/expected"
  printf '%s\tpass\t\n' "$name"
}

expect() { printf '%s\n' "$@" >"$work/expected"; }

kafka_tools=org.apache.kafka.tools
at=(--bootstrap-server "$broker")
to="$run-topic"

topics() {
  local topics="$kafka_tools.TopicCommand"
  tool $topics "${at[@]}" --create --topic "$to" --partitions 2 --config retention.ms=3600000
  tool $topics "${at[@]}" --alter --topic "$to" --partitions 3
  tool $topics "${at[@]}" --describe --topic "$to"
  tool $topics "${at[@]}" --create --topic "$run-gone" && tool $topics "${at[@]}" --delete --topic "$run-gone"
  echo "listed $(tool $topics "${at[@]}" --list | grep -c "$run")"
}

configs() {
  local configs=kafka.admin.ConfigCommand
  tool $configs "${at[@]}" --alter --topic "$to" --add-config retention.bytes=1000000
  tool $configs "${at[@]}" --describe --topic "$to"
  tool $configs "${at[@]}" --alter --client "$run" --add-config producer_byte_rate=1000000
  tool $configs "${at[@]}" --describe --client "$run"
}

console_producer() {
  seq 1 100 | sed 's/.*/k&:v&/' | tool $kafka_tools.ConsoleProducer "${at[@]}" --topic "$to" \
    --reader-property parse.key=true --reader-property key.separator=: --compression-codec zstd
  echo "ended with $?"
}

console_consumer() {
  tool $kafka_tools.consumer.ConsoleConsumer "${at[@]}" --topic "$to" --from-beginning --group "$run" --max-messages 100 \
    --formatter-property print.key=true --formatter-property key.separator=: | sort | uniq | grep -c '^k[0-9]*:v[0-9]*$'
}

delete_records() {
  printf '{"partitions":[{"topic":"%s","partition":0,"offset":1}],"version":1}' "$to" >"$work/delete.json"
  tool $kafka_tools.DeleteRecordsCommand "${at[@]}" --offset-json-file "$work/delete.json"
}

consumer_groups() {
  local groups=$kafka_tools.consumer.group.ConsumerGroupCommand
  tool $groups "${at[@]}" --list
  tool $groups "${at[@]}" --describe --group "$run" | awk -v t="$to" '$2 == t { lag += $6 } END { print "lag", lag + 0 }'
  tool $groups "${at[@]}" --group "$run" --topic "$to:1" --reset-offsets --to-offset 2 --execute
  tool $groups "${at[@]}" --describe --group "$run" --state
  tool $groups "${at[@]}" --delete-offsets --group "$run" --topic "$to:2"
  tool $groups "${at[@]}" --delete --group "$run"
}

# A transaction that nobody ends: the perf tool holds one open while the tools look at it, and one aborts it.
transactions() {
  local transactions=$kafka_tools.TransactionsCommand
  tool $kafka_tools.TopicCommand "${at[@]}" --create --topic "$run-txn" --partitions 1 >/dev/null
  tool $kafka_tools.ProducerPerformance --topic "$run-txn" --num-records 200 --record-size 10 --throughput 5 \
    --bootstrap-server "$broker" --transactional-id "$run-txn" --transaction-duration-ms 600000 >/dev/null &
  local open=$!
  for _ in $(seq 1 10); do
    tool $transactions "${at[@]}" list >"$work/transactions"
    if grep -q "$run-txn .*Ongoing" "$work/transactions"; then break; fi
  done
  cat "$work/transactions"
  tool $transactions "${at[@]}" describe --transactional-id "$run-txn"
  tool $transactions "${at[@]}" describe-producers --topic "$run-txn" --partition 0
  tool $transactions "${at[@]}" abort --topic "$run-txn" --partition 0 --start-offset 0
  echo "abort ended with $?"
  kill "$open" 2>/dev/null
  wait "$open" 2>/dev/null
}

# Reads from the start, and leaves its group behind for the tool that moves and deletes it.
console_share_consumer() {
  local configs=kafka.admin.ConfigCommand
  tool $configs "${at[@]}" --alter --entity-type groups --entity-name "$run-share" --add-config share.auto.offset.reset=earliest
  tool $kafka_tools.consumer.ConsoleShareConsumer "${at[@]}" --topic "$run-verify" --group "$run-share" --max-messages 200 \
    --timeout-ms 30000 | sort -n | uniq | grep -c '^[0-9][0-9]*$'
}

share_groups() {
  local groups=$kafka_tools.consumer.group.ShareGroupCommand
  tool $groups "${at[@]}" --list
  tool $groups "${at[@]}" --describe --group "$run-share" --state
  tool $groups "${at[@]}" --describe --group "$run-share" --verbose
  tool $groups "${at[@]}" --group "$run-share" --topic "$run-verify" --reset-offsets --to-earliest --execute
  tool $groups "${at[@]}" --delete-offsets --group "$run-share" --topic "$run-verify"
  tool $groups "${at[@]}" --delete --group "$run-share"
}

verifiable_producer() {
  tool $kafka_tools.VerifiableProducer --bootstrap-server "$broker" --topic "$run-verify" --max-messages 200 --acks -1
}

verifiable_consumer() {
  tool $kafka_tools.VerifiableConsumer --bootstrap-server "$broker" --topic "$run-verify" --group-id "$run-verify" \
    --max-messages 200 --reset-policy earliest "$@"
}

printf 'version\t%s\n' "$(cd "$clients/tools" && echo kafka-tools-[0-9]*.jar | sed 's/kafka-tools-\(.*\)\.jar/\1/')"
expect 'Produce\(0\): .*usable' 'Fetch\(1\): .*usable'
behaviour kafka-broker-api-versions tool $kafka_tools.BrokerApiVersionsCommand "${at[@]}"
expect 'Cluster ID: [A-Za-z0-9_-]{22}'
behaviour kafka-cluster tool $kafka_tools.ClusterTool cluster-id "${at[@]}"
expect 'Feature: transaction.version.*FinalizedVersionLevel'
behaviour kafka-features tool $kafka_tools.FeatureCommand "${at[@]}" describe
expect "Created topic $to" "PartitionCount: 3.*retention.ms=3600000" "listed 1"
behaviour kafka-topics topics
expect "retention.bytes=1000000" "producer_byte_rate=1000000"
behaviour kafka-configs configs
expect "ended with 0"
behaviour kafka-console-producer console_producer
expect '^100$'
behaviour kafka-console-consumer console_consumer
expect '^100$'
# shellcheck disable=SC2016
behaviour kafka-get-offsets eval 'tool $kafka_tools.GetOffsetShell "${at[@]}" --topic "$to" | awk -F: "{ n += \$3 } END { print n }"'
expect "lag 0" "$to +1 +2" "Empty" "$to +2 +Successful" "Deletion of requested consumer groups .* was successful"
behaviour kafka-consumer-groups consumer_groups
expect "partition: $to-0.*low_watermark: 1"
behaviour kafka-delete-records delete_records
expect "Ongoing" "CurrentTransactionStartOffset" "abort ended with 0"
behaviour kafka-transactions transactions
expect "\"partition\":\"$to-0\",\"size\":[1-9]"
behaviour kafka-log-dirs tool $kafka_tools.LogDirsCommand "${at[@]}" --describe --topic-list "$to"
expect '"name":"tool_data".*"acked":200|"acked":200'
behaviour kafka-verifiable-producer verifiable_producer
expect '"name":"records_consumed".*"count":' '"name":"offsets_committed".*"success":true'
behaviour kafka-verifiable-consumer verifiable_consumer
expect 'Completed updating config for group' '^200$'
behaviour kafka-console-share-consumer console_share_consumer
expect "$run-share" "$run-share .*Empty" "$run-verify +0 .*[0-9]" "$run-share +$run-verify +0 +0" "Successful" \
  "Deletion of requested share groups .* was successful"
behaviour kafka-share-groups share_groups
expect "$run-verify +(Classic|Consumer)"
behaviour kafka-groups tool $kafka_tools.GroupsCommand "${at[@]}" --list
expect '^20000 records sent'
behaviour kafka-producer-perf-test tool $kafka_tools.ProducerPerformance --topic "$run-perf" --num-records 20000 \
  --record-size 100 --throughput -1 --bootstrap-server "$broker"
expect ', 20000, '
behaviour kafka-consumer-perf-test tool $kafka_tools.ConsumerPerformance "${at[@]}" --topic "$run-perf" \
  --num-records 20000 --timeout 30000
