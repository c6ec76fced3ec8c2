#!/usr/bin/env bash
# Runs the benchmarks and writes bench/results/: one JSON file per part with the machine's description, and
# table.md with everything beside its rival.
#
#   scripts/bench.sh [micro|servers]       default: both
#   BENCH_FILTER=gcra scripts/bench.sh     only the micro-benchmark programs whose name has it
set -euo pipefail
cd "$(dirname "$0")/.."

part=${1:-all}
results=bench/results
mkdir -p "$results"

scripts/install_packages.sh bench
cmake --preset bench --log-level=WARNING
cmake --build --preset bench --parallel "${JOBS:-$(nproc)}"
python3 scripts/bench_report.py machine >"$results/machine.json"

run_micro() {
  local program name ran=no
  for program in build/bench/bin/*_bench; do
    name=$(basename "$program")
    if [ ! -x "$program" ] || [[ "$name" != *"${BENCH_FILTER:-}"* ]]; then continue; fi
    echo "== $name"
    "$program" --benchmark_out="$results/micro_$name.json" --benchmark_out_format=json
    ran=yes
  done
  if [ "$ran" = no ]; then echo "bench: no micro-benchmark was built"; fi
}

# Server benchmarks pin the server to one core and the load to the other, and measure each rival in the same run.
# bench/servers/run.sh gets the binary and the results folder, and writes servers_*.json there:
#   {"rows": [{"group": "gateway", "name": "weir", "value": 12.9, "unit": "cpu us/request",
#              "rival": "nginx limit_req", "rival_value": 15.3, "ratio": 1.19}]}
run_servers() {
  if [ -x bench/servers/run.sh ]; then
    bench/servers/run.sh build/bench/weir "$results"
  else
    echo "bench: no server benchmarks yet (bench/servers/run.sh)"
  fi
}

case "$part" in
  micro) run_micro ;;
  servers) run_servers ;;
  all)
    run_micro
    run_servers
    ;;
  *)
    echo "usage: $0 [micro|servers]" >&2
    exit 2
    ;;
esac
python3 scripts/bench_report.py table "$results" | tee "$results/table.md"
