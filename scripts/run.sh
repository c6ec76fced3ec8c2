#!/usr/bin/env bash
# Builds weir, starts it on the quick start with a stand-in upstream, says what to paste, and ends both on Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."

config=examples/quickstart.yaml
upstream=127.0.0.1:8090
gateway=127.0.0.1:8080
ready_seconds_max=30
stop_seconds_max=30
pids=()

is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

refuse_taken_ports() {
  local port taken=no
  for port in 8090:upstream 8080:gateway 8081:api 8082:admin 9090:ops; do
    if is_open "${port%:*}"; then
      echo "run: port ${port%:*} (${port#*:}) is taken by another program; stop it and try again" >&2
      taken=yes
    fi
  done
  [ "$taken" = no ]
}

stop() {
  trap - EXIT INT TERM HUP
  local pid
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
  for ((i = 0; i < stop_seconds_max * 10; i++)); do
    local alive=no
    for pid in "${pids[@]}"; do if kill -0 "$pid" 2>/dev/null; then alive=yes; fi; done
    if [ "$alive" = no ]; then return; fi
    sleep 0.1
  done
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}

wait_until_ready() {
  for ((i = 0; i < ready_seconds_max * 10; i++)); do
    local pid
    for pid in "${pids[@]}"; do
      if ! kill -0 "$pid" 2>/dev/null; then
        echo "run: a server ended before it was ready; its own message is above" >&2
        return 1
      fi
    done
    if curl -fsS -o /dev/null --max-time 1 http://127.0.0.1:9090/readyz 2>/dev/null && is_open 8090; then return; fi
    sleep 0.1
  done
  echo "run: weir was not ready after ${ready_seconds_max} s" >&2
  return 1
}

scripts/build.sh
if [ ! -x build/weir ]; then
  echo "run: the build left no build/weir" >&2
  exit 1
fi
refuse_taken_ports

trap stop EXIT
trap 'stop; exit 0' INT TERM HUP
build/weir mock-upstream --listen "$upstream" &
pids+=($!)
build/weir serve --config "$config" &
pids+=($!)
wait_until_ready

cat <<TEXT

Weir is running with $config (Ctrl-C ends it):
  gateway   http://$gateway          limits and forwards to the stand-in upstream
  api       http://127.0.0.1:8081     decisions over HTTP: POST /v1/check
  admin     http://127.0.0.1:8082     reload, reset, state, top
  ops       http://127.0.0.1:9090     /livez /readyz /metrics
  upstream  http://$upstream          an OpenAI-compatible stand-in

Paste into another terminal:

1. One call, with the limits in its headers
   curl -i http://$gateway/v1/chat/completions -H 'Authorization: Bearer alice' -H 'Content-Type: application/json' -d '{"model":"demo","messages":[{"role":"user","content":"Hello"}]}'

2. A hundred quick calls: how many passed, and how long the refused ones are to wait
   for i in \$(seq 100); do curl -s -o /dev/null -w '%{http_code} retry-after: %header{retry-after}\n' http://$gateway/v1/models -H 'Authorization: Bearer bob'; done | uniq -c

3. One streamed answer
   curl -N http://$gateway/v1/chat/completions -H 'Authorization: Bearer carol' -H 'Content-Type: application/json' -d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"Hello"}]}'

TEXT

code=0
wait -n "${pids[@]}" || code=$?
echo "run: a server ended on its own (exit $code)" >&2
exit 1
