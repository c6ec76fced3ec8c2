#!/usr/bin/env bash
# The server benchmarks: bench/servers/run.sh BINARY RESULTS_FOLDER [GROUP...]
set -euo pipefail
exec python3 "$(dirname "$0")/run.py" "$@"
