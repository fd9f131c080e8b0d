#!/bin/sh
# Runs the object store contract and the broker end to end against real S3 servers: moto (from pip) and versitygw (through Go).
# A server that cannot be installed is named and skipped; it is an error when none ran.
# Usage: scripts/real_s3.sh [CACHE_DIRECTORY]
set -eu
cd "$(dirname "$0")/.."
cache=${1:-${TMPDIR:-/tmp}/skerry-real-s3}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
PATH="$PWD/node_modules/.bin:$PATH"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test-secret SKERRY_TEST_S3_BUCKET=skerry-test
server=
ran=0

stop() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  server=
}
trap stop EXIT
trap 'exit 1' INT TERM

# Any HTTP answer will do; the contract itself says whether it is an S3 server.
await_port() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    kill -0 "$server" 2>/dev/null || return 1
    curl -s -o /dev/null "$1" && return 0
    sleep 0.5
  done
  return 1
}

# An unused port of the loopback interface.
free_port() {
  node -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})'
}

check() {
  await_port "$2" || { echo "real_s3: $1 did not start, see $cache/$1.log" >&2; exit 1; }
  # Only moto lets anyone create the bucket like this; versitygw serves the directory of that name.
  [ "$1" != moto ] || curl -sf -o /dev/null -X PUT "$2/$SKERRY_TEST_S3_BUCKET"
  echo "real_s3: $1"
  SKERRY_TEST_S3_ENDPOINT=$2 bun test tests/contract/object_store_s3.test.ts -t "real server"
  SKERRY_TEST_S3_ENDPOINT=$2 bun test --timeout 120000 tests/e2e/s3.test.ts
  ran=$((ran + 1))
  stop
}

if [ ! -x "$cache/venv/bin/moto_server" ]; then
  { python3 -m venv "$cache/venv" && "$cache/venv/bin/pip" -q install 'moto[server]==5.2.5'; } || true
fi
if [ -x "$cache/venv/bin/moto_server" ]; then
  port=$(free_port)
  "$cache/venv/bin/moto_server" -H 127.0.0.1 -p "$port" >"$cache/moto.log" 2>&1 &
  server=$!
  check moto "http://127.0.0.1:$port"
else
  echo "real_s3: moto cannot be installed here" >&2
fi

if [ ! -x "$cache/bin/versitygw" ]; then
  GOBIN="$cache/bin" go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 || true
fi
if [ -x "$cache/bin/versitygw" ]; then
  port=$(free_port)
  mkdir -p "$cache/buckets/$SKERRY_TEST_S3_BUCKET"
  ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
    "$cache/bin/versitygw" --port "127.0.0.1:$port" posix "$cache/buckets" >"$cache/versitygw.log" 2>&1 &
  server=$!
  check versitygw "http://127.0.0.1:$port"
else
  echo "real_s3: versitygw cannot be installed here" >&2
fi

[ "$ran" -gt 0 ] || { echo "real_s3: no server could be installed" >&2; exit 1; }
