-- http-request lua.weir: asks Weir about the call, by the proxy `weir`, and leaves its answer in variables:
-- weir_status (0: Weir does not decide now) and one for each field of FIELDS that the answer has.
local FIELDS = {
  "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy",
  "retry-after", "retry-after-ms", "x-should-retry", "content-type", "www-authenticate",
}
-- Fields of the connection and of the body, and what only the proxy may say.
local NOT_PASSED = {
  ["connection"] = true, ["keep-alive"] = true, ["upgrade"] = true, ["te"] = true, ["transfer-encoding"] = true,
  ["content-length"] = true, ["expect"] = true, ["host"] = true, ["x-forwarded-host"] = true,
  ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true, ["x-original-method"] = true, ["x-original-uri"] = true,
}

local function request_headers(txn)
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not NOT_PASSED[name] then
      headers[name] = {}
      for i = 0, #values do headers[name][i + 1] = values[i] end
    end
  end
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  headers["x-forwarded-host"] = { txn.f:req_hdr("host") }
  return headers
end

core.register_action("weir", { "http-req" }, function(txn)
  local answer = core.httpclient():get({
    url = "http://127.0.0.1:8088/v1/authorize",
    headers = request_headers(txn),
    timeout = 2000,
  })
  if not answer or answer.status >= 500 then  -- HAProxy answers so itself when Weir does not.
    txn:set_var("txn.weir_status", 0)
    return
  end
  txn:set_var("txn.weir_status", answer.status)
  txn:set_var("txn.weir_body", answer.body or "")
  for _, name in ipairs(FIELDS) do
    local values = answer.headers[name]
    if values then txn:set_var("txn.weir_" .. name:gsub("-", "_"), values[0]) end
  end
end)
