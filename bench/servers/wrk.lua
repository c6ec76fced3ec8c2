-- Calls of a thousand clients in turn; PIPELINE of them in one write. DOOR: gateway, check or authorize.
local pipeline = tonumber(os.getenv("PIPELINE") or "1")
local door = os.getenv("DOOR") or "gateway"
local requests, at = {}, 0

local function call(client)
  local key = "Bearer client-" .. client
  if door == "check" then
    local body = '{"attributes":{"client":"client-' .. client .. '","path":"/v1/models"}}'
    return wrk.format("POST", "/v1/check", { ["Content-Type"] = "application/json" }, body)
  elseif door == "authorize" then
    return wrk.format("GET", "/v1/authorize", {
      ["Authorization"] = key, ["X-Forwarded-Method"] = "GET", ["X-Forwarded-Uri"] = "/v1/models",
      ["X-Forwarded-Host"] = "api.example.com", ["X-Forwarded-For"] = "198.51.100.9",
    })
  end
  return wrk.format("GET", "/v1/models", { ["Authorization"] = key })
end

function init()
  for i = 1, 1000 do
    local batch = {}
    for j = 1, pipeline do
      batch[j] = call((i * 31 + j * 7) % 1000)
    end
    requests[i] = table.concat(batch)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  io.write(string.format('{"requests":%d,"duration_us":%d,"errors":%d,"p50_us":%d,"p99_us":%d}\n',
    summary.requests, summary.duration,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
