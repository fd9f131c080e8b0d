#!/bin/sh
# Installs the Kafka clients that tests/compat needs and npm does not have: kcat, python3-confluent-kafka, Maven with a JDK
# (Debian packages, as root or through sudo), and the newest Python clients in DIRECTORY/python. What is there is left alone.
# Usage: scripts/install_clients.sh DIRECTORY
set -eu
directory=${1:?"usage: scripts/install_clients.sh DIRECTORY"}
mkdir -p "$directory"

packages=
need() { packages="$packages $*"; }
command -v kcat >/dev/null || need kcat
/usr/bin/python3 -c 'import confluent_kafka' 2>/dev/null || need python3-confluent-kafka
python3 -c 'import ensurepip' 2>/dev/null || need python3-venv
command -v mvn >/dev/null || need maven default-jdk-headless
if [ -n "$packages" ]; then
  root=
  [ "$(id -u)" = 0 ] || root=sudo
  export DEBIAN_FRONTEND=noninteractive
  $root timeout 120 apt-get update -qq
  # shellcheck disable=SC2086
  $root timeout 240 apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi

if [ ! -x "$directory/python/bin/python" ]; then
  python3 -m venv "$directory/python"
  timeout 120 "$directory/python/bin/pip" -q install confluent-kafka==2.16.1 aiokafka==0.14.0
fi
