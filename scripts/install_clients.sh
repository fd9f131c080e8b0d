#!/bin/sh
# Installs what one client of tests/compat needs into DIRECTORY; Debian packages as root or through sudo. What is there
# is left alone. Usage: scripts/install_clients.sh DIRECTORY WHAT, which is one of
#   kcat | confluent-debian | python | java VERSION | share VERSION | tools | connect | registry | go NAME | rust NAME
set -eu
usage="usage: scripts/install_clients.sh DIRECTORY WHAT [NAME]"
mkdir -p "${1:?$usage}"
directory=$(cd "$1" && pwd)
what=${2:?$usage}
name=${3:-}
cd "$(dirname "$0")/../tests/compat"

packages() {
  root=
  [ "$(id -u)" = 0 ] || root=sudo
  export DEBIAN_FRONTEND=noninteractive
  $root timeout 120 apt-get update -qq
  $root timeout 240 apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

has() { command -v "$1" >/dev/null; }

# The jars that a pom names, with all that they need. An installation that broke off must not look like a whole one.
jars() {
  has mvn && has javac || packages maven default-jdk-headless
  [ ! -d "$1" ] || return 0
  rm -rf "$1.half"
  mkdir -p "$1.half"
  timeout 300 mvn -q -B -f "$2" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$1.half" "-Dkafka.version=$name"
  mv "$1.half" "$1"
}

# A program that is published as an archive with all that it needs.
archive() {
  has mvn || packages maven
  [ ! -d "$1" ] || return 0
  rm -rf "$1.half"
  mkdir -p "$1.half"
  timeout 400 mvn -q -B -f tools/pom.xml dependency:copy "-Dartifact=$2" "-DoutputDirectory=$1.half"
  tar -xzf "$1.half"/*.tar.gz -C "$1.half"
  rm "$1.half"/*.tar.gz
  mv "$1.half" "$1"
}

case $what in
kcat) has kcat || packages kcat ;;
confluent-debian)
  /usr/bin/python3 -c 'import confluent_kafka' 2>/dev/null || packages python3-confluent-kafka
  ;;
python)
  python3 -c 'import ensurepip' 2>/dev/null || packages python3-venv
  [ -x "$directory/python/bin/python" ] || python3 -m venv "$directory/python"
  # The last four are codecs, which aiokafka and kafka-python do not bring.
  timeout 180 "$directory/python/bin/pip" -q --disable-pip-version-check install \
    confluent-kafka==2.16.1 aiokafka==0.14.0 kafka-python==3.0.12 cramjam python-snappy lz4 zstandard
  ;;
java)
  jars "$directory/java/$name" java/pom.xml
  javac -nowarn -Xlint:-removal -cp "$directory/java/$name/*" -d "$directory/java/$name/classes" java/src/*.java
  ;;
share)
  jars "$directory/java/$name" java/pom.xml
  javac -nowarn -cp "$directory/java/$name/*" -d "$directory/share" share/*.java java/src/Behaviours.java
  ;;
tools)
  jars "$directory/tools" tools/pom.xml
  javac -nowarn -cp "$directory/tools/*" -d "$directory/streams" streams/*.java java/src/Behaviours.java
  ;;
connect) jars "$directory/connect" connect/pom.xml ;;
registry) archive "$directory/registry" io.apicurio:apicurio-registry-app:3.3.3:tar.gz:all ;;
go) (cd "$name" && timeout 300 go build -o "$directory/go/$name" .) ;;
rust) (cd "rust/$name" && timeout 400 cargo build --quiet --locked --target-dir "$directory/rust/$name") ;;
*)
  echo "$usage" >&2
  exit 2
  ;;
esac
