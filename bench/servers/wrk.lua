-- Calls of a thousand clients in turn; PIPELINE of them in one write; POST to /v1/check when CHECK is set.
local pipeline = tonumber(os.getenv("PIPELINE") or "1")
local check = os.getenv("CHECK") == "1"
local requests, at = {}, 0

function init()
  for i = 1, 1000 do
    local batch = {}
    for j = 1, pipeline do
      local client = (i * 31 + j * 7) % 1000
      if check then
        local body = '{"attributes":{"client":"client-' .. client .. '","path":"/v1/models"}}'
        batch[j] = wrk.format("POST", "/v1/check", { ["Content-Type"] = "application/json" }, body)
      else
        batch[j] = wrk.format("GET", "/v1/models", { ["Authorization"] = "Bearer client-" .. client })
      end
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
