#!/bin/sh
# kafka-go against one broker. Usage: tests/compat/kafka_go/run.sh BOOTSTRAP
set -eu
cd "$(dirname "$0")"
exec go run . "$1"
