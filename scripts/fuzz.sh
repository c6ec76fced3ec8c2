#!/usr/bin/env bash
# Builds every fuzz target with clang, AddressSanitizer and UndefinedBehaviorSanitizer, and runs each
# for a bounded time, two at once. Fails when one crashes, leaks or takes too long on one input.
#
#   scripts/fuzz.sh [SECONDS]      per target; else FUZZ_SECONDS, else 10
#
# WEIR_FUZZ_BUILD names the build folder (default build/fuzz), CXX the compiler (default clang++-19).
# Findings are left in BUILD/findings; run a target with such a file as its argument to repeat it.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-${FUZZ_SECONDS:-10}}"
build="${WEIR_FUZZ_BUILD:-build/fuzz}"

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_COMPILER="${CXX:-clang++-19}" \
  -DCMAKE_CXX_FLAGS=-fsanitize=fuzzer-no-link \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" \
  -DWEIR_SANITIZE=address,undefined -DWEIR_BUILD_FUZZ=ON -DWEIR_BUILD_TESTS=OFF >/dev/null
cmake --build "$build" --target fuzzers

mkdir -p "$build/findings" "$build/corpus"
run() {
  local name="$1"
  mkdir -p "$build/corpus/$name"
  # New inputs go to the build folder; the corpus of the repository is only read.
  if ! "$build/bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
      -max_len=4096 -print_final_stats=0 -verbosity=0 -artifact_prefix="$build/findings/$name-" \
      "$build/corpus/$name" "fuzz/corpus/$name" >"$build/findings/$name.log" 2>&1; then
    echo "fuzz: $name FAILED"
    tail -n 40 "$build/findings/$name.log"
    return 1
  fi
  echo "fuzz: $name ok"
}
export -f run
export build seconds
find fuzz/corpus -mindepth 1 -maxdepth 1 -type d -printf '%f\0' | xargs -0 -P 2 -I{} bash -c 'run {}'
