-- Settles, renewals and resets, in order. KEYS: the counters, each once, and perhaps a marker.
-- ARGV[1], MessagePack:
--   {meters, the marker's place in KEYS or 0, how long it is kept in ms, then for each item
--    op (0 settle, 1 renew, 2 reset), key, meter, reserved (renew: time to live), actual,
--    the receipt's two numbers and its time, x}
-- x is a fixed window's offset or a lease's id. Answer, MessagePack: {now (below 0: stale, nothing was
-- done), then 1 or 0 for each item}. The marker keeps the answer, so that a repeat is answered alike.
local argument = cmsgpack.unpack(ARGV[1])
local meters, marker = argument[1], argument[2]
-- Only a debt may have to open a new window of a calendar.
for i = 4, #argument, 9 do
  if argument[i] == 0 and argument[i + 4] > argument[i + 3] and IsStale(meters) then
    return cmsgpack.pack({-now})
  end
end
if marker > 0 then
  local said = call('GET', KEYS[marker])
  if said then return said end
end
values = call('MGET', unpack(KEYS))
local counters = Counters()

-- How many whole units of the receipt may come back where the rate has changed since: what would be
-- left of them had either rate held all along, whichever is less.
local function Across(m, fastest, units, u, r, at)
  local left = counters.Age(u, r, now - at, m)
  local refilled, part = counters.MulDiv(now > at and now - at or 0, fastest[4], fastest[3])
  if part > 0 then refilled = refilled + 1 end
  return math.min(units, left, u - refilled)
end

local function RefundBucket(m, from, s, units, a, b, at)
  local u, r = a, b
  if m[1] % 2 == 1 then u, r = counters.FromTicks(a, m) end
  local fastest = from
  local past = s.past
  -- A change is taken to have come a second later, since the rates of two nodes change one after the
  -- other.
  if past and past[1] + 1001049 >= at and
     counters.IsFaster(past[3], past[4], from[3], from[4]) then
    fastest = past
  end
  local back, part = units, 0
  if from == m and fastest == m then
    u, r = counters.Age(u, r, now - at, m)
    if u < units then back, part = u, r end
    if back == 0 and part == 0 then return false end
  else
    back = Across(m, fastest, units, u, r, at)
    if back <= 0 then return false end
  end
  if back > s.u or (back == s.u and part >= s.r) then
    s.u, s.r = 0, 0
  elseif part > s.r then
    s.u, s.r = s.u - back - 1, s.r + (from[3] - part)
  else
    s.u, s.r = s.u - back, s.r - part
  end
  return true
end

local function Refund(m, from, s, units, a, b, at)
  local form = m[1]
  if form <= 4 then return RefundBucket(m, from, s, units, a, b, at) end
  if b == 0 then return false end
  if form ~= 9 and (from ~= m or (s.past and s.past[1] + 1001049 >= at)) then return false end
  return counters.Kind(form).Refund(from, s, units, a)
end

local function Settle(k, m, reserved, actual, a, b, at, x)
  if m[1] == 11 then return false end
  local delta = reserved - actual
  if delta == 0 and m[1] ~= 10 then return true end
  local from, s = counters.Open(m, values[k], m[1] ~= 6 and x or nil)
  local done
  if m[1] == 10 then
    done = s ~= nil and counters.Kind(10).Release(s, x)
  elseif delta > 0 then
    done = s ~= nil and Refund(m, from, s, delta, a, b, at)
  else
    s = s or counters.Kind(m[1]).Fresh(m, x)
    counters.Kind(from[1]).Overrun(from, s, -delta)
    done = true
  end
  if done then counters.Store(k, from, s) end
  return done
end

local out = {now}
for i = 4, #argument, 9 do
  local op, k, m = argument[i], argument[i + 1], meters[argument[i + 2]]
  local x = argument[i + 8]
  local done
  if op == 0 then
    done = Settle(k, m, argument[i + 3], argument[i + 4], argument[i + 5], argument[i + 6],
                  argument[i + 7], x)
  elseif op == 1 then
    local from, s = counters.Open(m, values[k], x)
    done = m[1] == 10 and s ~= nil and counters.Kind(10).Renew(s, x, argument[i + 3])
    if done then counters.Store(k, from, s) end
  else
    done = values[k] ~= false
    if done then
      call('DEL', KEYS[k])
      values[k] = false
    end
  end
  out[#out + 1] = done and 1 or 0
end
local answer = cmsgpack.pack(out)
if marker > 0 then call('SET', KEYS[marker], answer, 'PX', argument[3]) end
return answer
