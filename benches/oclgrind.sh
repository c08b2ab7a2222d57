#!/usr/bin/env bash
# Runs the quickstart's kernels on small arrays under oclgrind, which checks every access of every work-item: data races,
# uninitialised values, accesses out of bounds. Exits non-zero if it reports anything or a result is wrong.
#
# The example is built first: cargo build --release --features opencl --example quickstart. Another binary may be given.
set -uo pipefail
cd "$(dirname "$0")/.."
example=${1:-target/release/examples/quickstart}
[ -x "$example" ] || { echo "$example is not there: cargo build --release --features opencl --example quickstart"; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# No stored code, so that all of it is compiled here. Not optimised: clang builds vectors element by element out of an undefined
# one, which oclgrind takes for an uninitialised value. Nor tuned: it takes what was copied to a place inside of
# another buffer (clEnqueueCopyBuffer with an offset) for uninitialised, too, and the tuner runs on such copies, between guards.
TILEWRIGHT_CACHE=off timeout 300 oclgrind --data-races --uninitialized --check-api --build-options -cl-opt-disable \
  --log "$log" "$example" --device opencl:0 --small --no-tuning
status=$?
if [ -s "$log" ]; then
  echo "oclgrind reports:"
  head -n 60 "$log"
  exit 1
fi
exit "$status"
