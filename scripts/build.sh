#!/usr/bin/env bash
# Builds the product alone: build/weir, the libraries, the floors check. No test is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh build
cmake --preset release -DWEIR_BUILD_TESTS=OFF --log-level=WARNING
cmake --build --preset release --parallel "${JOBS:-$(nproc)}"
