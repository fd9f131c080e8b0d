#!/usr/bin/env bash
# kcat (librdkafka) against one broker: metadata, all codecs, keys and headers, groups, times.
# Usage: tests/compat/kcat/run.sh BOOTSTRAP
set -euo pipefail
broker=$1
topic="kcat-$$-$RANDOM"
passed=0

check() {
  if [ "$2" != "$3" ]; then
    echo "not ok $1: expected $3, got $2"
    echo "$passed passed, 1 failed"
    exit 1
  fi
  passed=$((passed + 1))
  echo "ok $1"
}

# Reads a topic from its beginning to its end.
read_all() { timeout 30 kcat -b "$broker" -C -t "$1" -o beginning -e -q "${@:2}"; }

check metadata "$(timeout 20 kcat -b "$broker" -L | grep -c 'broker 1 at')" 1
for codec in none gzip snappy lz4 zstd; do
  seq 1 1000 | timeout 30 kcat -b "$broker" -P -t "$topic-$codec" -z "$codec" -X enable.idempotence=true
  check "$codec" "$(read_all "$topic-$codec" | md5sum)" "$(seq 1 1000 | md5sum)"
done
for acks in 0 1 all; do
  echo "$acks" | timeout 30 kcat -b "$broker" -P -t "$topic-acks" -X acks="$acks"
done
check acks "$(read_all "$topic-acks" | sort | tr '\n' ' ')" "0 1 all "
printf 'k1:v1\nk2:\n' | timeout 30 kcat -b "$broker" -P -t "$topic-keyed" -K: -Z -H a=b
check "keys, headers, null values" "$(read_all "$topic-keyed" -f '%k %h %S %o\n' | tr '\n' ';')" "k1 a=b 2 0;k2 a=b -1 1;"
check "from an offset" "$(timeout 30 kcat -b "$broker" -C -t "$topic-none" -o 990 -e -q | wc -l | tr -d ' ')" 10
check "the last ones" "$(timeout 30 kcat -b "$broker" -C -t "$topic-none" -o -3 -e -q | tr '\n' ' ')" "998 999 1000 "
check "offset by time" "$(timeout 30 kcat -b "$broker" -Q -t "$topic-none:0:1")" "$topic-none [0] offset 0"
group() { timeout 40 kcat -b "$broker" -G "$topic-group" -X auto.offset.reset=earliest -c "$1" -q "$topic-none"; }
check "a group" "$(group 400 | tail -1)" 400
check "goes on at its committed offset" "$(group 600 | head -1)" 401
echo "$passed passed, 0 failed"
