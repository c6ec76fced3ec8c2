#!/usr/bin/env bash
# Installs a build (default: build/) into a fresh prefix, builds examples/embed against the installed package alone, and
# runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/prefix" >"$folder/install.log"
if grep -rlE 'boost' "$folder/prefix/include" "$folder"/prefix/lib*/cmake "$folder"/prefix/lib/*/cmake 2>/dev/null; then
  echo "test_install: the files above mention Boost; the installed headers and exports are to be free of it" >&2
  exit 1
fi
cmake -S examples/embed -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$folder/prefix" --log-level=WARNING
cmake --build "$folder/build"
"$folder/build/embed"

for path in bin/weir share/doc/weir/LICENSE; do
  if [ ! -e "$folder/prefix/$path" ]; then
    echo "test_install: $path is not installed" >&2
    exit 1
  fi
done
"$folder/prefix/bin/weir" version
