#!/usr/bin/env bash
# Replays one seed of the simulated fleet with everything that happens (SEED=n), or looks for a seed that breaks a bound
# (COUNT seeds from FROM on, default 20000 from 1).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_packages.sh build
cmake --preset release -DWEIR_BUILD_TESTS=OFF --log-level=WARNING
cmake --build --preset release --parallel "${JOBS:-$(nproc)}" --target simulate
if [ -n "${SEED:-}" ]; then exec build/bin/simulate --seed "$SEED"; fi
exec build/bin/simulate --from "${FROM:-1}" --count "${COUNT:-20000}"
