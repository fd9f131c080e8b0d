#!/usr/bin/env bash
# The behaviours of the matrix that kcat (librdkafka) offers, against one broker. Usage: tests/compat/kcat/compat.sh BOOTSTRAP
set -uo pipefail
broker=$1
run="kcat-$$-$RANDOM"

# The behaviour holds when the command prints what is expected.
behaviour() {
  local name=$1 expected=$2 got
  shift 2
  got=$("$@" 2>&1)
  if [ "$got" = "$expected" ]; then
    printf '%s\tpass\t\n' "$name"
  else
    printf '%s\tfail\texpected %s, got %s\n' "$name" "$expected" "$(printf %s "$got" | tr '\n\t' '  ' | cut -c 1-300)"
  fi
}

skip() {
  local why=$1
  shift
  printf "%s\tskip\t$why\n" "$@"
}

# Writes standard input to a topic, with options.
write() {
  local topic=$1
  shift
  timeout 30 kcat -b "$broker" -P -t "$topic" "$@"
}

# Reads a topic from a place (a number, beginning, s@time) to its end, with options.
read_from() {
  local topic=$1 place=$2
  shift 2
  timeout 30 kcat -b "$broker" -C -t "$topic" -o "$place" -e -q "$@"
}

numbers=$(seq 1 500 | md5sum)

metadata() { timeout 20 kcat -b "$broker" -L | grep -c ' broker 1 at'; }

produced() {
  seq 1 500 | write "$run-$1" "${@:2}" && read_from "$run-$1" beginning | md5sum
}

shapes() {
  printf 'k1:v1\nk2:\n:v3\n' | write "$run-shapes" -K: -Z -H a=1 -H b=2
  read_from "$run-shapes" beginning -f '%k %h %S %o;'
}

# 900 bytes each, in batches of up to a megabyte.
large() {
  seq 1 3000 | awk '{ printf "%s", $1; for (i = 0; i < 900; i++) printf "x"; print "" }' >"$work/large"
  write "$run-large" -X linger.ms=500 -X batch.size=1000000 <"$work/large"
  read_from "$run-large" beginning | cmp - "$work/large" && echo same
}

from_time() {
  local now
  echo early | write "$run-times"
  sleep 0.1
  now=$(date +%s%3N)
  echo late | write "$run-times"
  read_from "$run-times" "s@$now"
}

offsets() {
  for at in -2 -1 1; do timeout 30 kcat -b "$broker" -Q -t "$run-times:0:$at" | tr '\n' ';'; done
}

group() {
  timeout 60 kcat -b "$broker" -G "$run-group" -X auto.offset.reset=earliest -X heartbeat.interval.ms=300 -c "$1" -q "${@:3}" "$2"
}

two_members() {
  local first second
  group 100 "$run-none" >"$work/a" &
  first=$!
  group 400 "$run-none" >"$work/b" &
  second=$!
  wait "$first" "$second"
  # One partition: one of them reads, and the other goes on where it has left.
  sort -n "$work/a" "$work/b" | md5sum
}

resume() {
  seq 501 600 | write "$run-none" && group 100 "$run-none" | tr '\n' ' '
}

txn() {
  seq 1 500 | write "$run-txn" -X transactional.id="$run" 2>/dev/null && read_from "$run-txn" beginning -X isolation.level=read_committed | md5sum
}

# Ended in its middle: what it has written is aborted, by the next one with the same name.
txn_abort() {
  { seq 1 10; sleep 3; } | timeout 2 kcat -b "$broker" -P -t "$run-abort" -X transactional.id="$run-abort" -X linger.ms=0 2>/dev/null
  seq 11 20 | write "$run-abort" -X transactional.id="$run-abort" 2>/dev/null
  read_from "$run-abort" beginning -X isolation.level=read_committed | tr '\n' ' '
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'version\t%s\n' "$(kcat -V 2>&1 | sed -n 's/^Version \([^ ]*\).*librdkafka \([^ ]*\).*/\1, librdkafka \2/p')"
behaviour "metadata" 1 metadata
for codec in none gzip snappy lz4 zstd; do
  behaviour "produce $codec" "$numbers" produced "$codec" -z "$codec"
done
for acks in 0 1 all; do
  behaviour "acks $acks" "$numbers" produced "acks-$acks" -X acks="$acks"
done
behaviour "keys, headers, nulls" "k1 a=1,b=2 2 0;k2 a=1,b=2 -1 1; a=1,b=2 2 2;" shapes
behaviour "large batch" same large
behaviour "idempotent producer" "$numbers" produced idempotent -X enable.idempotence=true -X batch.num.messages=10
behaviour "consume from an offset" "498 499 500 " eval 'read_from "$run-none" 497 | tr "\n" " "'
behaviour "consume from a time" late from_time
behaviour "list offsets" "$run-times [0] offset 0;$run-times [0] offset 2;$run-times [0] offset 0;" offsets
behaviour "group: two members" "$numbers" two_members
behaviour "group: resume" "$(seq 501 600 | tr '\n' ' ')" resume
behaviour "txn: commit" "$numbers" txn
behaviour "txn: abort" "$(seq 11 20 | tr '\n' ' ')" txn_abort
skip "librdkafka has it since 2.12" "group: KIP-848"
skip "no option of this program" "committed offsets" "txn: read_committed" "txn: fencing" "txn: consume-transform-produce"
skip "it has no admin calls" "admin: cluster" "admin: topics" "admin: partitions" "admin: configs" \
  "admin: delete records" "admin: groups" "admin: delete offsets" "admin: describe producers" \
  "admin: describe transactions" "admin: quotas" "admin: log dirs"
