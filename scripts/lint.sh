#!/usr/bin/env bash
# Linters. Without an argument: everything, with clang-tidy on the product's own sources.
#
#   scripts/lint.sh [all|changed|cheap|format]
#     changed   clang-tidy only on what differs from origin/main (or HEAD) or is not committed, tests too
#     cheap     no clang-tidy: format, floors, scripts
#     format    rewrite the C++ files in place instead of checking
set -euo pipefail
cd "$(dirname "$0")/.."

scope=${1:-all}
jobs=${JOBS:-$(nproc)}
failed=()

product_sources() { sources | grep -vE '_(test|bench|fuzz)\.cc$'; }
sources() { git ls-files --cached --others --exclude-standard -- '*.cc' '*.h' | sort; }

changed() {
  local base=HEAD
  if git rev-parse --quiet --verify origin/main >/dev/null; then base=$(git merge-base origin/main HEAD); fi
  { git diff --name-only --diff-filter=d "$base" -- '*.cc'; git ls-files --others --exclude-standard -- '*.cc'; } | sort -u
}

check() {
  echo "lint: $1"
  if ! "${@:2}"; then failed+=("$1"); fi
}

format_check() { sources | xargs -r -n 20 -P "$jobs" clang-format-19 --dry-run -Werror; }

# Only translation units that the build knows have compile commands; fuzz targets belong to another preset.
tidy() {
  local known
  cmake --preset tidy --log-level=WARNING >/dev/null || return 1
  known=$(python3 -c 'import json, os; print(*(os.path.relpath(e["file"]) for e in json.load(open("build/tidy/compile_commands.json"))), sep="\n")' | sort -u) || return 1
  comm -12 <("$1" | grep '\.cc$') <(echo "$known") |
    xargs -r -n 1 -P "$jobs" clang-tidy-19 -p build/tidy --quiet --warnings-as-errors='*'
}

python_check() { .venv/bin/ruff check --quiet .; }

shell_check() { git ls-files -- '*.sh' .ci/run | xargs -r shellcheck --severity=warning; }

case "$scope" in
  all | changed | cheap | format) ;;
  *)
    echo "usage: $0 [all|changed|cheap|format]" >&2
    exit 2
    ;;
esac

scripts/install_packages.sh lint
if [ "$scope" = format ]; then
  sources | xargs -r -n 20 -P "$jobs" clang-format-19 -i
  exit
fi
check "includes point downward" python3 scripts/check_floors.py
check "clang-format" format_check
check "Python" python_check
check "shell" shell_check
case "$scope" in
  all) check "clang-tidy" tidy product_sources ;;
  changed) check "clang-tidy (changed files)" tidy changed ;;
esac
if [ ${#failed[@]} -gt 0 ]; then
  printf 'lint failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "lint: clean"
