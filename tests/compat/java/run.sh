#!/bin/sh
# Kafka's own client, the newest of two lines, against one broker. Usage: tests/compat/java/run.sh BOOTSTRAP
set -eu
cd "$(dirname "$0")"
for version in 3.9.2 4.4.0; do
  echo "# kafka-clients $version"
  mvn -q -B "-Dkafka.version=$version" compile exec:java "-Dexec.args=$1"
done
