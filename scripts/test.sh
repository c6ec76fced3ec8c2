#!/usr/bin/env bash
# Every test: ctest (units, properties, floors), a short run of each fuzz target, the install example, and the
# end-to-end tests. Ends with one line, "N passed, N failed", and exits 0 only if nothing failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

jobs=${JOBS:-$(nproc)}
results=build/test-results
started=$SECONDS
passed=0
failed=0
broken=()

say() { printf '\n== %s (%d s)\n' "$*" $((SECONDS - started)); }

# One stage that is one test: its command passes or fails as a whole.
check() {
  local name=$1
  shift
  say "$name"
  if "$@" </dev/null; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    broken+=("$name")
  fi
}

# One stage whose runner wrote a JUnit file: adds its counts, and a failure if the runner failed without any.
add_results() {
  local name=$1 file=$2 code=$3 ok bad
  read -r ok bad < <(python3 scripts/count_results.py "$file")
  if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
  passed=$((passed + ok))
  failed=$((failed + bad))
  if [ "$bad" -gt 0 ]; then broken+=("$name"); fi
}

finish() {
  say "done"
  if [ ${#broken[@]} -gt 0 ]; then printf 'failed: %s\n' "${broken[@]}"; fi
  echo "$passed passed, $failed failed"
  if [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]; then exit 0; else exit 1; fi
}

must() {
  local name=$1
  shift
  say "$name"
  if ! "$@" </dev/null; then
    failed=$((failed + 1))
    broken+=("$name")
    finish
  fi
}

build() { cmake --build --preset release --parallel "$jobs"; }

must "install what is missing" scripts/install_packages.sh test
rm -rf "$results"
mkdir -p "$results"
must "configure" cmake --preset release -DWEIR_BUILD_TESTS=ON --log-level=WARNING
must "build" build

say "unit and property tests"
ctest --preset release --parallel "$jobs" --output-junit "$PWD/$results/ctest.xml" </dev/null
add_results "unit and property tests" "$results/ctest.xml" $?

say "end-to-end tests"
WEIR_BINARY="$PWD/build/weir" .venv/bin/python -m pytest tests --junitxml "$results/pytest.xml" </dev/null
add_results "end-to-end tests" "$results/pytest.xml" $?

check "the installed library, used by examples/embed" scripts/test_install.sh
check "each fuzz target, briefly" env FUZZ_SECONDS="${FUZZ_SECONDS:-5}" scripts/fuzz.sh
finish
