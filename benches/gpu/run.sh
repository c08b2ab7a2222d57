#!/usr/bin/env bash
# Runs the tests and benchmarks of this folder on a machine with an NVIDIA driver, PyTorch and (optionally) Triton.
#
#   ./run.sh [tests|fuzz|bench|tune|gpt2|all]      all is tests, then bench
#
# `fuzz` runs random kernels (TILEWRIGHT_FUZZ_SEEDS, else 2000) on every GPU through each of its drivers, against the interpreter.
# `gpt2` measures a decoder of GPT-2's size through the graph compiler beside torch.compile.
#
# Results go to $OUT when that is set, else to results/ here. Each part ends within 9 minutes; the exit status is 0 only if every
# test passed and every measured result was right. TILEWRIGHT_BENCH_DEVICE names another device than cuda:0,
# TILEWRIGHT_BENCH_QUICK=1 measures less. TILEWRIGHT_GPT2_MODES are the modes of `gpt2`, with commas between; PyTorch's the same and
# `eager`.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-all}
case "$what" in
  tests | fuzz | bench | tune | gpt2 | all) ;;
  *) echo "usage: run.sh [tests|fuzz|bench|tune|gpt2|all]" >&2; exit 2 ;;
esac
out=${OUT:-$here/results}
mkdir -p "$out" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
device=${TILEWRIGHT_BENCH_DEVICE:-cuda:0}
quick=()
[ "${TILEWRIGHT_BENCH_QUICK:-0}" = 1 ] && quick=(--quick)
# Leave the user's caches alone.
export TILEWRIGHT_CACHE_DIR=$work/cache
TILEWRIGHT_COMMIT=$(cat "$here/COMMIT")
export TILEWRIGHT_COMMIT
failed=0
say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# Runs a command for at most so many seconds, and never beyond the end of the part's nine minutes.
begin_part() { ends=$((SECONDS + 525)); }
begin_part
limited() { # SECONDS COMMAND...
  local left=$((ends - SECONDS)) limit=$1
  shift
  [ "$left" -lt "$limit" ] && limit=$left
  [ "$limit" -gt 0 ] || { echo "no time is left for $1"; return 124; }
  timeout --kill-after=5 "$limit" "$@"
}

# ---- libraries -------------------------------------------------------------------------------------------------------
library() { ldconfig -p 2>/dev/null | awk -v name="$1" '$1 == name && /x86-64/ {print $NF; exit}'; }
# PyTorch brings its own libraries, so it runs with what was set before.
original=${LD_LIBRARY_PATH:-}
candidates=("$(dirname "$(library libcuda.so.1)")" "$(dirname "$(library libnvidia-opencl.so.1)")" /usr/local/nvidia/lib64)
# CUDA's toolkit has an OpenCL loader.
[ -n "$(library libOpenCL.so.1)" ] || candidates+=(/usr/local/cuda/lib64)
folders=()
for folder in "${candidates[@]}"; do
  [ "$folder" != . ] && [ -d "$folder" ] && folders+=("$folder")
done
if compgen -G "$here/loader/*.deb" >/dev/null && command -v dpkg >/dev/null; then
  for package in "$here"/loader/*.deb; do
    # OpenCL's loader only where the machine has none: its own knows where its drivers are.
    case "$package" in
      */ocl-icd-libopencl1.deb) [ -n "$(library libOpenCL.so.1)" ] && continue ;;
    esac
    dpkg -x "$package" "$work/loader" || echo "cannot unpack $package"
  done
  for folder in "$work"/loader/usr/lib/x86_64-linux-gnu "$work"/loader/lib/x86_64-linux-gnu; do
    [ -d "$folder" ] && folders+=("$folder")
  done
fi
LD_LIBRARY_PATH="${original:+$original:}$(IFS=:; echo "${folders[*]}")"
export LD_LIBRARY_PATH

found() { # the first file of a name in those folders
  local folder
  IFS=: read -ra all <<<"$LD_LIBRARY_PATH"
  for folder in "${all[@]}" /usr/lib/x86_64-linux-gnu; do
    [ -n "$folder" ] && [ -e "$folder/$1" ] && { echo "$folder/$1"; return; }
  done
}
if [ -n "$(found libnvidia-opencl.so.1)" ] && [ ! -e /etc/OpenCL/vendors/nvidia.icd ]; then
  mkdir -p /etc/OpenCL/vendors 2>/dev/null
  if ! echo libnvidia-opencl.so.1 2>/dev/null >/etc/OpenCL/vendors/nvidia.icd; then
    mkdir -p "$work/vendors"
    found libnvidia-opencl.so.1 >"$work/vendors/nvidia.icd"
    export OCL_ICD_VENDORS=$work/vendors
  fi
fi
if [ -z "${VK_DRIVER_FILES:-}" ]; then
  for icd in /usr/share/vulkan/icd.d/nvidia_icd*.json /etc/vulkan/icd.d/nvidia_icd*.json \
    /usr/local/nvidia/share/vulkan/icd.d/nvidia_icd*.json; do
    [ -e "$icd" ] && { export VK_DRIVER_FILES=$icd; break; }
  done
fi
if [ -z "${VK_DRIVER_FILES:-}" ]; then
  for name in libGLX_nvidia.so.0 libEGL_nvidia.so.0; do
    path=$(found "$name")
    [ -n "$path" ] || continue
    printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.3.0"}}\n' "$path" \
      >"$work/nvidia_icd.json"
    export VK_DRIVER_FILES=$work/nvidia_icd.json
    break
  done
fi
missing=$(ldd "$here/gpu_bench" | awk '/not found/ {print $1}')
if [ -n "$missing" ]; then
  echo "this machine lacks $missing; make the bundle with --with-loader, or install it" >&2
  exit 2
fi
[ -z "${VK_DRIVER_FILES:-}" ] && echo "no NVIDIA Vulkan driver was found"

say "devices, commit $TILEWRIGHT_COMMIT"
limited 60 "$here/quickstart" --list | tee "$out/devices.txt"
# Every GPU, by its name. Software devices (PoCL, llvmpipe), whose compilers take minutes, are for ./test.sh.
mapfile -t devices < <(awk '/^(cuda|vulkan|opencl):[0-9]+ / && !/unusable|llvmpipe|\((cpu|pthread|basic)-/ {print $1}' \
  "$out/devices.txt")

# ---- tests -----------------------------------------------------------------------------------------------------------
tests_json=""
record() { # NAME PASSED FAILED
  printf '%-36s %4d passed, %d failed\n' "$1" "$2" "$3"
  tests_json+="${tests_json:+, }{\"name\": \"$1\", \"passed\": $2, \"failed\": $3}"
  failed=$((failed + $3))
  echo "[$tests_json]" >"$out/tests.json"
}
run_tests() {
  say "tests"
  local test name log status passed wrong
  TILEWRIGHT_TEST_DEVICES=$(IFS=,; echo "cpu${devices[*]:+,${devices[*]}}")
  # The CPU device reports races in builds without debug assertions, too.
  export TILEWRIGHT_TEST_DEVICES TILEWRIGHT_RACES=on
  mkdir -p "$work/cwd" "$work/tests"
  tar -C "$work/tests" -xJf "$here/tests.tar.xz" || { failed=$((failed + 1)); echo "FAILED: the tests cannot be unpacked"; return; }
  for test in "$work"/tests/*; do
    name=$(basename "$test")
    log=$out/test-$name.log
    # Not from the source tree: there is none here.
    (cd "$work/cwd" && limited 330 "$test") >"$log" 2>&1
    status=$?
    passed=$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    wrong=$(sed -n 's/^test result: .* \([0-9]*\) failed; .*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
    [ "$status" != 0 ] && [ "$wrong" = 0 ] && wrong=1
    record "$name" "$passed" "$wrong"
    if [ "$status" != 0 ]; then
      [ "$status" = 124 ] && echo "  it ran out of time"
      grep -E '^test .* FAILED$' "$log" | head -n 20
      tail -n 30 "$log" | cut -c 1-300
    fi
  done
  for name in "${devices[@]}"; do
    log=$out/quickstart-${name/:/-}.log
    if limited 60 "$here/quickstart" --device "$name" >"$log" 2>&1; then record "quickstart $name" 1 0; else record "quickstart $name" 0 1; fi
    cat "$log"
  done
}

# ---- random kernels --------------------------------------------------------------------------------------------------
run_fuzz() {
  local seeds=${TILEWRIGHT_FUZZ_SEEDS:-2000} name log status
  mkdir -p "$work/tests"
  tar -C "$work/tests" -xJf "$here/tests.tar.xz" ./runtime-random_devices ||
    { failed=$((failed + 1)); echo "FAILED: the tests cannot be unpacked"; return; }
  for name in "${devices[@]}"; do
    say "random kernels on $name"
    log=$out/fuzz-${name/:/-}.log
    TILEWRIGHT_FUZZ_SEEDS=$seeds TILEWRIGHT_FUZZ_DEVICE=$name TILEWRIGHT_FUZZ_TRACE=1 TILEWRIGHT_CACHE=off limited 240 \
      "$work/tests/runtime-random_devices" --nocapture >"$log" 2>&1
    status=$?
    grep -E " runs, |^== |^at first|^made smaller" "$log" | cut -c 1-300
    if [ "$status" = 0 ]; then record "random kernels $name" 1 0; else record "random kernels $name" 0 1; fi
    [ "$status" = 124 ] && echo "  it ran out of time"
    # A driver that crashes takes the process with it: the last kernel named is the one.
    [ "$status" -gt 128 ] && grep ": family " "$log" | tail -n 1
  done
}

# ---- benchmarks ------------------------------------------------------------------------------------------------------
run_bench() {
  say "ours"
  limited 170 "$here/gpu_bench" --device "$device" --sweep "${quick[@]}" --json "$out/ours-1.json" ||
    { failed=$((failed + 1)); echo "FAILED: gpu_bench"; }
  say "peers"
  local peers=()
  if "$here/gpu_bench" --device "$device" --print-cases >"$work/cases.json" &&
    env LD_LIBRARY_PATH="$original" python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    # Written outside the folder, which may be read-only.
    export PYTHONDONTWRITEBYTECODE=1 TRITON_CACHE_DIR=$work/triton
    limited 170 env LD_LIBRARY_PATH="$original" python3 "$here/peers/peers.py" "${quick[@]}" --cases "$work/cases.json" \
      --json "$out/peers.json" 2>"$out/peers.log" ||
      { echo "the peers were not measured to the end:"; tail -n 5 "$out/peers.log"; }
    [ -e "$out/peers.json" ] && peers=(--peers "$out/peers.json")
  else
    echo "no PyTorch with CUDA here: ours is compared with nothing"
  fi
  say "ours again"
  limited 120 "$here/gpu_bench" --device "$device" --quick --json "$out/ours-2.json" ||
    { failed=$((failed + 1)); echo "FAILED: gpu_bench, again"; }
  say "table"
  local ours=()
  for run in "$out/ours-1.json" "$out/ours-2.json"; do [ -e "$run" ] && ours+=("$run"); done
  [ "${#ours[@]}" -gt 0 ] || { echo "nothing was measured"; return; }
  PYTHONDONTWRITEBYTECODE=1 python3 "$here/peers/table.py" "${ours[@]}" "${peers[@]}" --json "$out/table.json" |
    tee "$out/table.txt"
}

# ---- tuning ----------------------------------------------------------------------------------------------------------
run_tune() {
  say "our autotuner"
  limited 200 "$here/gpu_tune" --device "$device" --json "$out/tune-ours.json" ||
    { failed=$((failed + 1)); echo "FAILED: gpu_tune"; }
  say "Triton's"
  local peer=()
  if "$here/gpu_tune" --device "$device" --print-list >"$work/list.json"; then
    export PYTHONDONTWRITEBYTECODE=1
    limited 300 env LD_LIBRARY_PATH="$original" python3 "$here/peers/triton_tune.py" --list "$work/list.json" --limit 100 \
      --json "$out/tune-triton.json" || echo "Triton's autotuner was not measured to the end"
    [ -e "$out/tune-triton.json" ] && peer=(--peer "$out/tune-triton.json")
  fi
  say "table"
  [ -e "$out/tune-ours.json" ] || { echo "nothing was tuned"; return; }
  PYTHONDONTWRITEBYTECODE=1 python3 "$here/peers/tune_table.py" "$out/tune-ours.json" "${peer[@]}" --json "$out/tune.json" |
    tee "$out/tune.txt"
}

# ---- a whole model ---------------------------------------------------------------------------------------------------
run_gpt2() {
  local modes=${TILEWRIGHT_GPT2_MODES:-default,reduce-overhead,max-autotune} peers=()
  say "gpt2, ours"
  limited 300 "$here/gpt2_bench" --device "$device" --modes "$modes" --profile "${quick[@]}" --json "$out/gpt2.json" ||
    { failed=$((failed + 1)); echo "FAILED: gpt2_bench"; }
  say "gpt2, PyTorch"
  export PYTHONDONTWRITEBYTECODE=1 TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor
  limited 220 env LD_LIBRARY_PATH="$original" python3 "$here/peers/gpt2_peer.py" "${quick[@]}" --modes "eager,$modes" \
    --json "$out/gpt2-peers.json" 2>"$out/gpt2-peers.log" ||
    { echo "the peers were not measured to the end:"; tail -n 5 "$out/gpt2-peers.log"; }
  [ -e "$out/gpt2-peers.json" ] && peers=(--peers "$out/gpt2-peers.json")
  [ -e "$out/gpt2.json" ] || { echo "nothing was measured"; return; }
  say "gpt2, table"
  python3 "$here/peers/gpt2_table.py" "$out/gpt2.json" "${peers[@]}" --json "$out/gpt2-table.json" |
    tee "$out/gpt2-table.txt"
}

case "$what" in
  tests) run_tests ;;
  fuzz) run_fuzz ;;
  bench) run_bench ;;
  tune) run_tune ;;
  all) run_tests; begin_part; run_bench ;;
  gpt2) run_gpt2 ;;
esac

say "done"
[ -z "$tests_json" ] || echo "tests: $(tr -d '[]' <"$out/tests.json" | grep -o '"passed": [0-9]*' | awk '{n += $2} END {print n + 0}') passed"
echo "results are in $out; $failed failed"
[ "$failed" = 0 ]
