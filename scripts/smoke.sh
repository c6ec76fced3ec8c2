#!/usr/bin/env bash
# Starts a stand-in upstream and a server of the given binary on free ports, calls every door, and ends both with
# SIGTERM. Fails if an answer or an exit code is not the expected one: a sanitizer's report shows as the latter.
#
#   scripts/smoke.sh build/asan/weir
set -euo pipefail

weir=${1:?usage: $0 BINARY}
folder=$(mktemp -d)
pids=()

stop_hard() {
  local pid
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap stop_hard EXIT

fail() {
  echo "smoke: $*" >&2
  cat "$folder"/*.log >&2
  exit 1
}

# Waits until FILE has a line "listening NAME=ADDRESS" and prints ADDRESS.
address_of() {
  local found
  for _ in $(seq 300); do
    found=$(sed -n "s/.*listening $1=\([^ ]*\).*/\1/p" "$2" | head -n 1)
    if [ -n "$found" ]; then
      echo "$found"
      return
    fi
    sleep 0.1
  done
  fail "no line 'listening $1=' within 30 s"
}

expect() {
  local want=$1 got
  shift
  got=$(curl -s -o "$folder/body" -w '%{http_code}' --max-time 20 "$@") || fail "no answer: curl $*"
  [ "$got" = "$want" ] || fail "expected $want, got $got: curl $*"
}

end() {
  local pid=$1 code=0
  kill -TERM "$pid"
  for _ in $(seq 300); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -0 "$pid" 2>/dev/null && fail "still running 30 s after SIGTERM"
  wait "$pid" || code=$?
  [ "$code" -eq 0 ] || fail "exit code $code after SIGTERM"
}

"$weir" mock-upstream --listen 127.0.0.1:0 >"$folder/upstream.out" 2>"$folder/upstream.log" &
upstream_pid=$!
pids+=("$upstream_pid")
upstream=$(address_of '[a-z-]*' "$folder/upstream.out")

cat >"$folder/weir.yaml" <<YAML
listen:
  gateway: 127.0.0.1:0
  api: 127.0.0.1:0
  admin: 127.0.0.1:0
  ops: 127.0.0.1:0
threads: 2
timeouts: {drain_delay: 100ms, drain: 5s}
upstreams:
  - {name: ai, urls: ["http://$upstream"]}
routes:
  - {match: {path: /v1/*}, upstream: ai}
limits:
  - {name: per-client, per: [client], rate: 3/hour}
YAML
"$weir" serve --config "$folder/weir.yaml" >"$folder/weir.out" 2>"$folder/weir.log" &
weir_pid=$!
pids+=("$weir_pid")
gateway=$(address_of gateway "$folder/weir.out")
api=$(address_of api "$folder/weir.out")
admin=$(address_of admin "$folder/weir.out")
ops=$(address_of ops "$folder/weir.out")

json='Content-Type: application/json'
chat='{"model":"demo","messages":[{"role":"user","content":"Hello"}]}'
stream='{"model":"demo","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
expect 200 "http://$ops/readyz"
expect 200 "http://$gateway/v1/models" -H 'Authorization: Bearer a'
expect 200 "http://$gateway/v1/chat/completions" -H 'Authorization: Bearer a' -H "$json" -d "$chat"
expect 200 "http://$gateway/v1/chat/completions" -H 'Authorization: Bearer a' -H "$json" -d "$stream"
expect 429 "http://$gateway/v1/models" -H 'Authorization: Bearer a'
expect 200 "http://$api/v1/check" -H "$json" -d '{"attributes":{"client":"b"}}'
expect 400 "http://$api/v1/check" -H "$json" -d '{"attributes":'
expect 200 "http://$admin/admin/top?by=denied&n=5"
expect 200 "http://$ops/metrics"
callers=()
for _ in $(seq 4); do
  curl -s --max-time 20 "http://$gateway/v1/models?[1-50]" -H 'Authorization: Bearer c' >/dev/null &
  callers+=($!)
done
wait "${callers[@]}" || fail "a caller among four at once got no answer"
end "$weir_pid"
end "$upstream_pid"
echo "smoke: ok"
