#!/usr/bin/env bash
# Runs every check of Tilewright: format, lints, unit tests, filetests, and the device tests on every device of this machine.
#
# On Debian and Ubuntu it first installs what the tests need (software OpenCL and Vulkan devices, spirv-tools, oclgrind, and
# ptxas from its Python wheel); elsewhere, or where installing fails, it says what it therefore skips.
#   ./test.sh            everything
#   ./test.sh --no-install    leave the machine as it is
# The last line is "N passed, M failed"; the exit status is 0 only if M is 0.
set -uo pipefail
cd "$(dirname "$0")"

install=1
[ "${1:-}" = "--no-install" ] && install=0
say() { printf '\n== %s\n' "$*"; }

# ---- what the tests need ---------------------------------------------------------------------------------------------
packages=(pocl-opencl-icd ocl-icd-opencl-dev mesa-vulkan-drivers libvulkan1 spirv-tools oclgrind)
missing=()
if command -v dpkg-query >/dev/null; then
  for p in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
  done
  if [ "${#missing[@]}" -gt 0 ] && [ "$install" = 1 ]; then
    say "installing ${missing[*]}"
    sudo=()
    [ "$(id -u)" = 0 ] || sudo=(sudo -n)
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
      "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
      echo "could not install ${missing[*]}: install them by hand to run all tests"
  fi
else
  echo "not a Debian system: install OpenCL (PoCL), Vulkan (lavapipe), spirv-tools and oclgrind by hand to run all tests"
fi

ptxas_version=13.0.88
tools=target/tools
find_ptxas() {
  if [ -n "${TILEWRIGHT_PTXAS:-}" ]; then echo "$TILEWRIGHT_PTXAS"; return; fi
  command -v ptxas && return
  find "$tools" -name ptxas -type f 2>/dev/null | head -n 1
}
if [ -z "$(find_ptxas)" ] && [ "$install" = 1 ] && command -v python3 >/dev/null; then
  say "fetching ptxas $ptxas_version into $tools"
  mkdir -p "$tools" &&
    python3 -m pip download --quiet --disable-pip-version-check --no-deps -d "$tools" "nvidia-cuda-nvcc==$ptxas_version" &&
    python3 -m zipfile -e "$tools"/nvidia_cuda_nvcc-*.whl "$tools" &&
    find "$tools" -name ptxas -type f -exec chmod +x {} + ||
    echo "could not fetch ptxas: PTX is not assembled in this run"
fi
ptxas=$(find_ptxas)
[ -n "$ptxas" ] && export TILEWRIGHT_PTXAS="$(realpath "$ptxas")"

# ---- what there is, and what is skipped ------------------------------------------------------------------------------
say "tools and devices"
features=()
skipped=0
have() { printf '  %-12s %s\n' "$1" "$2"; }
lack() { printf '  %-12s absent: %s is skipped\n' "$1" "$2"; skipped=$((skipped + 1)); }
[ -n "$ptxas" ] && have ptxas "$ptxas" || lack ptxas "assembling PTX"
command -v spirv-val >/dev/null && have spirv-val "$(command -v spirv-val)" || lack spirv-val "validating SPIR-V"
if ldconfig -p 2>/dev/null | grep -q 'libOpenCL\.so ' || [ -e /usr/lib/x86_64-linux-gnu/libOpenCL.so ]; then
  features=(--features opencl)
  have OpenCL "linked"
else
  lack OpenCL "the OpenCL backend"
fi
ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1' && have Vulkan "loader present" || lack Vulkan "the Vulkan backend"
ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && have CUDA "driver present" || have CUDA "absent: the CUDA backend is not run (its code is assembled and simulated)"
[ -d target/models ] && have MiniLM "weights in target/models" || have MiniLM "weights are downloaded by the test that needs them"
# With everything installed a test that cannot find its tool has failed, not been skipped.
[ "$skipped" = 0 ] && export TILEWRIGHT_REQUIRE_TOOLS=1

# ---- the checks ------------------------------------------------------------------------------------------------------
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Each run leaves the user's caches alone.
TILEWRIGHT_CACHE_DIR=$(mktemp -d)
TILEWRIGHT_AUTOTUNE_DIR=$(mktemp -d)
export TILEWRIGHT_CACHE_DIR TILEWRIGHT_AUTOTUNE_DIR

step() { # one check that counts as one test
  say "$1"
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $*"; fi
}
tests() { # a cargo test run: its tests are counted
  say "$*"
  "$@" 2>&1 | tee "$log"
  local status=${PIPESTATUS[0]} p f
  p=$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
  f=$(sed -n 's/^test result: .* \([0-9]*\) failed; .*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
  [ "$status" != 0 ] && [ "$f" = 0 ] && f=1
  passed=$((passed + p))
  failed=$((failed + f))
}

step "format" cargo fmt --all --check
if [ "${#features[@]}" -gt 0 ]; then
  step "lints" cargo clippy --quiet --workspace --all-targets --all-features -- -D warnings
else
  step "lints" cargo clippy --quiet --workspace --all-targets -- -D warnings
fi
tests cargo test --workspace --no-fail-fast "${features[@]}"
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
step "quickstart on the CPU" cargo run --quiet --release --example quickstart -- --device cpu
if [ "${#features[@]}" -gt 0 ]; then
  step "quickstart on OpenCL" cargo run --quiet --release "${features[@]}" --example quickstart -- --device opencl:0
  if command -v oclgrind >/dev/null; then
    step "OpenCL kernels under oclgrind, with data-race detection" ./benches/oclgrind.sh
  fi
fi
if ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'; then
  step "quickstart on Vulkan" cargo run --quiet --release --example quickstart -- --device vulkan:0
fi

say "done"
[ "$skipped" -gt 0 ] && echo "$skipped parts were skipped, as listed under \"tools and devices\""
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
