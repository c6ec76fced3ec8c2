#!/usr/bin/env bash
# Unit tests and a smoke test of the servers under a sanitizer.
#
#   scripts/sanitize.sh asan|tsan
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-}
case "$preset" in
  asan | tsan) ;;
  *)
    echo "usage: $0 asan|tsan" >&2
    exit 2
    ;;
esac

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1:halt_on_error=1}

scripts/install_packages.sh test
cmake --preset "$preset" --log-level=WARNING
cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}"

# ThreadSanitizer's fixed memory map does not fit every kernel's address randomisation.
run=()
if setarch "$(uname -m)" -R true 2>/dev/null; then run=(setarch "$(uname -m)" -R); fi

# The tests with real Redis servers wait for those servers' own timeouts, and have one thread: nothing for this one to see.
leave_out=()
if [ "$preset" = tsan ]; then leave_out=(--label-exclude servers); fi

"${run[@]}" ctest --preset "$preset" --label-regex unit "${leave_out[@]}" --parallel "${JOBS:-$(nproc)}"
if [ -x "build/$preset/weir" ]; then
  "${run[@]}" scripts/smoke.sh "build/$preset/weir"
fi
