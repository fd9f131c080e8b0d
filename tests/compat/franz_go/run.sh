#!/bin/sh
# franz-go against one broker. Usage: tests/compat/franz_go/run.sh BOOTSTRAP
set -eu
cd "$(dirname "$0")"
exec go run . "$1"
