#!/bin/sh
# sarama against one broker. Usage: tests/compat/sarama/run.sh BOOTSTRAP
set -eu
cd "$(dirname "$0")"
exec go run . "$1"
