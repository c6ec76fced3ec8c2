-- Decisions, each all or nothing. KEYS: the counters, each once. ARGV[1], MessagePack:
--   {meters, then for each decision: the number of its charges (below 0: a peek), and for each charge
--    key, meter (below 0: shadow), cost, x}
-- x is a fixed window's offset, or a lease's id and time to live ('' for a mere test), else 0.
-- Answer, MessagePack: {now (below 0: stale, nothing was decided), then for each charge
--    0 denied,  remaining, reset_after, retry_after
--    1 allowed, remaining, reset_after
--    2 charged, remaining, reset_after, where it stands
--    3 charged, remaining, reset_after, where it stands in two numbers (buckets of a wide form)
--    4, 5 as 2 and 3, and the mark of the receipt (core/refund_total.h; else it is 0)}
-- Waits are in microseconds; -1: never, or not known. Nothing is written before all is decided, and
-- each counter is written once. A denial writes nothing but what a changed rate has carried over
-- and what a clock that was ahead has left.
local argument = cmsgpack.unpack(ARGV[1])
local meters = argument[1]
if IsStale(meters) then return cmsgpack.pack({-now}) end
values = call('MGET', unpack(KEYS))

-- By key: the level of a bucket that is as its meter left it, or the state of any other counter, and
-- the meter that it is under.
local levels, states, under = {}, {}, {}
-- By key, beside a level: since when it is there, and the last part of its state with the mark in it.
local born, returned = {}, {}
local dirty, changed, changes = {}, {}, 0
local counters = nil

local function Touch(k)
  if not dirty[k] then
    dirty[k] = true
    changes = changes + 1
    changed[changes] = k
  end
end

-- Takes in a counter that the quick way below cannot.
local function Enter(k, meter, x)
  counters = counters or Counters()
  local before = under[k]
  if before then -- Two rates of one limit meet in this call.
    local m = meters[before]
    if levels[k] then
      local rest = returned[k] and returned[k][1] or ''
      values[k] = (levels[k] > 0 or rest ~= '') and
                  write('>c22I7I7I7', m[2], born[k], now, levels[k]) .. rest
    else
      values[k] = counters.Save(m, states[k]) or false
    end
    levels[k] = nil
  end
  states[k] = counters.Load(meters[meter], values[k], x)
  under[k] = meter
end

local passes = {}
local out, o = {now}, 1
local i, last = 2, #argument
while i <= last do
  local count = argument[i]
  local charging = count > 0
  if not charging then count = -count end
  local first = i + 1
  local pass = true

  i = first
  for c = 1, count do
    local k, meter, n = argument[i], argument[i + 1], argument[i + 2]
    local enforced = meter > 0
    if not enforced then meter = -meter end
    local m = meters[meter]
    if under[k] ~= meter then
      local level
      if m[7] and not under[k] then
        local v = values[k]
        if not v then
          level, born[k] = 0, now
        elseif #v == 43 or #v >= 64 then
          local descriptor, began, at, ticks = read('>c22I7I7I7', v)
          if descriptor == m[2] and at <= now + AHEAD_MAX then
            level = ticks - (now - at) * m[4]
            if level < 0 then level = 0 end
            born[k] = began < now and began or now
            if #v > 43 then
              local _, mark, ends = read('>I7I7I7', v, 44)
              if ends > now then returned[k] = {string.sub(v, 44), mark, ends} end
            end
          end
        end
      end
      if level then
        levels[k], under[k] = level, meter
      else
        Enter(k, meter, argument[i + 3])
      end
    end
    local ok
    local level = levels[k]
    if level then
      ok = n == 0 or (n <= m[6] and level + n * m[3] <= m[7])
    else
      local s = states[k]
      if charging and s.carried then Touch(k) end
      ok = counters.Kind(m[1]).Test(m, s, n, argument[i + 3])
    end
    passes[c] = ok
    if enforced and not ok then pass = false end
    i = i + 4
  end

  i = first
  pass = pass and charging
  for c = 1, count do
    local k, meter, n = argument[i], argument[i + 1], argument[i + 2]
    local m = meters[meter > 0 and meter or -meter]
    local level = levels[k]
    local ok = passes[c]
    if level then
      local p, tau = m[3], m[7]
      if ok and pass and n > 0 then
        level = level + n * p
        levels[k] = level
        if not dirty[k] then
          dirty[k] = true
          changes = changes + 1
          changed[changes] = k
        end
        out[o + 1], out[o + 2], out[o + 3], out[o + 4] =
          2, floor((tau - level) / p), ceil(level / m[4]), level
        if returned[k] then
          out[o + 1], out[o + 5] = 4, returned[k][2]
          o = o + 1
        end
        o = o + 4
      else
        out[o + 1], out[o + 2], out[o + 3] =
          ok and 1 or 0, level >= tau and 0 or floor((tau - level) / p), ceil(level / m[4])
        o = o + 3
        if not ok then
          o = o + 1
          out[o] = n > m[6] and -1 or ceil((level + n * p - tau) / m[4])
        end
      end
    else
      local x = argument[i + 3]
      local kind, s = counters.Kind(m[1]), states[k]
      if ok and pass and n > 0 and x ~= '' then
        local remaining, reset, a, b, mark = kind.Charge(m, s, n, x)
        Touch(k)
        local what = b and 3 or 2
        out[o + 1], out[o + 2], out[o + 3], out[o + 4] = mark and what + 2 or what, remaining, reset, a
        o = o + 4
        if b then
          o = o + 1
          out[o] = b
        end
        if mark then
          o = o + 1
          out[o] = mark
        end
      else
        local _, remaining, reset, retry = kind.Test(m, s, n, x)
        out[o + 1], out[o + 2], out[o + 3] = ok and 1 or 0, remaining, reset
        o = o + 3
        if not ok then
          o = o + 1
          out[o] = retry
        end
      end
    end
    i = i + 4
  end
end

for c = 1, changes do
  local k = changed[c]
  local m, level = meters[under[k]], levels[k]
  if level then
    local state, lasts = write('>c22I7I7I7', m[2], born[k], now, level), level / m[4]
    local rest = returned[k]
    if rest then
      state = state .. rest[1]
      if rest[3] - now > lasts then lasts = rest[3] - now end
    end
    call('SET', KEYS[k], state, 'PX', text('%d', ceil(lasts / 1000) + 1 + spare_ms))
  else
    counters.Store(k, m, states[k])
  end
end
return cmsgpack.pack(out)
