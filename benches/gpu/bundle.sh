#!/usr/bin/env bash
# Builds one self-contained folder to be run on a CUDA machine: tests, benchmarks, quickstart, peers, and run.sh.
#
#   benches/gpu/bundle.sh [--with-loader] DIR      then, over there: DIR/run.sh [tests|fuzz|bench|tune|gpt2|all]
#
# --with-loader (on Debian and Ubuntu) adds the packages of the Vulkan and OpenCL loaders, for machines that have the NVIDIA
# driver but no loader; run.sh unpacks them without touching the system.
set -euo pipefail

loader=0
target=""
for arg in "$@"; do
  case "$arg" in
    --with-loader) loader=1 ;;
    -*) echo "unknown option $arg; usage: bundle.sh [--with-loader] DIR" >&2; exit 2 ;;
    *) target=$arg ;;
  esac
done
[ -n "$target" ] || { echo "usage: bundle.sh [--with-loader] DIR" >&2; exit 2; }
if [ -e "$target" ] && [ -n "$(ls -A "$target")" ] && [ ! -e "$target/COMMIT" ]; then
  echo "$target is not empty and no bundle; name another folder" >&2
  exit 2
fi
rm -rf "$target"
mkdir -p "$target/peers"
target=$(cd "$target" && pwd)
cd "$(dirname "$0")/../.."

# ---- programs --------------------------------------------------------------------------------------------------------
# Copies the programs that a cargo command builds, named after package and target, into a folder.
collect() { # FOLDER COMMAND...
  local folder=$1
  shift
  "$@" --message-format=json-render-diagnostics | python3 -c '
import json, pathlib, shutil, sys
folder = pathlib.Path(sys.argv[1])
count = 0
for line in sys.stdin:
    message = json.loads(line)
    program = message.get("executable")
    if message.get("reason") != "compiler-artifact" or not program:
        continue
    name = message["target"]["name"]
    if message["profile"]["test"]:
        # tilewright-runtime and its tests/kernels.rs: `runtime-kernels`; its unit tests: `runtime-unit`.
        package = pathlib.Path(message["manifest_path"]).parent.name
        name = package + "-" + ("unit" if "lib" in message["target"]["kind"] else name)
    shutil.copy2(program, folder / name)
    count += 1
sys.exit(0 if count else "nothing was built")
' "$folder"
}
tests=$(mktemp -d)
trap 'rm -rf "$tests"' EXIT
collect "$tests" cargo test --release --no-run -p tilewright-runtime -p tilewright-kernels \
  -p tilewright-autotune -p tilewright-graph-lowering \
  --features tilewright-runtime/opencl,tilewright-kernels/opencl,tilewright-autotune/opencl
collect "$target" cargo build --release -p tilewright-benches --features opencl --bin gpu_bench --bin gpu_tune --bin gpt2_bench
collect "$target" cargo build --release -p tilewright --features opencl --example quickstart
strip "$tests"/* "$target/gpu_bench" "$target/gpu_tune" "$target/gpt2_bench" "$target/quickstart"
# Each test program holds the compiler: packed together they take a tenth.
XZ_OPT="-8" tar -C "$tests" -cJf "$target/tests.tar.xz" .

# ---- scripts ---------------------------------------------------------------------------------------------------------
cp benches/peers/*.py "$target/peers/"
cp benches/gpu/run.sh "$target/run.sh"
chmod +x "$target/run.sh"
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit="$commit-modified"
echo "$commit" >"$target/COMMIT"

# ---- loaders ---------------------------------------------------------------------------------------------------------
if [ "$loader" = 1 ]; then
  mkdir -p "$target/loader"
  # The Vulkan loader; what the NVIDIA driver's Vulkan library itself links (GLVND and X11); the OpenCL loader.
  for package in libvulkan1 libegl1 libglvnd0 libopengl0 libgl1 libglx0 libgles2 libx11-6 libxext6 libxcb1 libxau6 \
    libxdmcp6 libbsd0 libmd0 ocl-icd-libopencl1; do
    (cd "$target/loader" && apt-get -o APT::Sandbox::User=root download -qq "$package" >/dev/null &&
      mv "$package"_*.deb "$package.deb") ||
      echo "could not download $package: machines that lack it will not have its devices" >&2
  done
fi

kib=$(du -sk "$target" | cut -f1)
echo "$target: commit $commit, $((kib / 1024)) MiB, tests: $(ls "$tests" | tr '\n' ' ')"
[ "$kib" -le $((50 * 1024)) ] || { echo "the bundle is over 50 MiB" >&2; exit 1; }
