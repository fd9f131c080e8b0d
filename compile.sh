#!/bin/sh
# Compiles Skerry into one executable.
#   ./compile.sh [--target TARGET] [--runtime bun|deno] [--out FILE]
# TARGET: linux-x64 linux-arm64 linux-x64-musl linux-arm64-musl darwin-x64 darwin-arm64 windows-x64
set -eu
cd "$(dirname "$0")"

target=""
runtime=bun
out=""
while [ $# -gt 0 ]; do
  case "$1" in
    --target) target=${2:?--target needs a value}; shift 2 ;;
    --runtime) runtime=${2:?--runtime needs a value}; shift 2 ;;
    --out) out=${2:?--out needs a value}; shift 2 ;;
    *) echo "Cannot use $1: allowed are --target, --runtime, --out" >&2; exit 2 ;;
  esac
done

case "$target" in
  ""|linux-x64|linux-arm64|linux-x64-musl|linux-arm64-musl|darwin-x64|darwin-arm64|windows-x64) ;;
  *) echo "Cannot use --target $target: allowed are linux-x64, linux-arm64, linux-x64-musl, linux-arm64-musl, darwin-x64, darwin-arm64, windows-x64" >&2; exit 2 ;;
esac

if [ -z "$out" ]; then
  out=dist/skerry${target:+-$target}
  case "$target" in windows-*) out=$out.exe ;; esac
fi
mkdir -p "$(dirname "$out")"

[ -d node_modules ] || node scripts/install.mjs

# A runtime that is installed wins; otherwise the one from npm is used.
find_runtime() {
  if [ -x "node_modules/.bin/$1" ]; then echo "node_modules/.bin/$1"
  elif command -v "$1" >/dev/null 2>&1; then command -v "$1"
  else echo "npx --yes $1"; fi
}

case "$runtime" in
  bun)
    bun=$(find_runtime bun)
    $bun build --compile --minify --bytecode --format=esm --sourcemap=none \
      ${target:+--target=bun-$target} --outfile "$out" src/cli/main.ts >/dev/null
    ;;
  deno)
    case "$target" in
      "") triple="" ;;
      linux-x64) triple=x86_64-unknown-linux-gnu ;;
      linux-arm64) triple=aarch64-unknown-linux-gnu ;;
      darwin-x64) triple=x86_64-apple-darwin ;;
      darwin-arm64) triple=aarch64-apple-darwin ;;
      windows-x64) triple=x86_64-pc-windows-msvc ;;
      *) echo "Cannot use --target $target with --runtime deno: Deno has no musl build" >&2; exit 2 ;;
    esac
    deno=$(find_runtime deno)
    if ! $deno compile -A --no-check ${triple:+--target "$triple"} --output "$out" src/cli/main.ts 2>dist/deno-compile.log; then
      echo "Cannot compile with Deno: it downloads its base executable at build time; is that download reachable? See dist/deno-compile.log" >&2
      exit 1
    fi
    ;;
  *) echo "Cannot use --runtime $runtime: allowed are bun, deno" >&2; exit 2 ;;
esac
echo "$out"
