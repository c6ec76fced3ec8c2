-- The steps of lease_counter.cc on the server, many to a call: item i works on KEYS[i] as ARGV[i]
-- says, one after the other, and its reply is the i-th 80 bytes of the result. Items, states and
-- replies are packed doubles, all of them whole numbers below 2^53, so nothing is ever printed or
-- rounded. Names and order of steps follow the C++, which a test holds to this text.
--
-- A state is written together with its expiry, and only when something was charged; once the expiry
-- has passed, the state would say what an absent one says.

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local LEVEL_MAX = 2 ^ 52
local CAPACITY_MIN = -2 ^ 51
local EXACT = 2 ^ 53
local SLACK = 1000000
local HOLDERS_MAX = 128
local REFILL, GIVE_BACK, TAKE, PEEK, PUT_BACK, POST, RESET = 1, 2, 3, 4, 5, 6, 7
local GRANTED, STALE, NO_ROOM, DRAINING, OTHER_WINDOW = 0, 1, 2, 3, 4
local ITEM = '<' .. string.rep('d', 18)
local HEAD = '<' .. string.rep('d', 10)
local HOLDER = '<' .. string.rep('d', 7)
local REPLY = '<' .. string.rep('d', 10)

local min, max, fmod = math.min, math.max, math.fmod
local pack, unpack_from = struct.pack, struct.unpack

-- Quotients of whole numbers, at least 0, exactly.
local function floor_div(a, b) return (a - fmod(a, b)) / b end
local function ceil_div(a, b)
  local rest = fmod(a, b)
  if rest == 0 then return a / b end
  return (a - rest) / b + 1
end
local function clamp(level) return max(0, min(level, LEVEL_MAX)) end

-- Of the item at hand.
local terms = {}
local s

local function load_state(text)
  if not text then
    return {fence = 0, tpu = 1, tpus = 0, born = now, base = now, level = 0, first = 0, last = 0, drain = 0, holders = {}}
  end
  local state, count, at = {}, 0, 0
  state.fence, state.tpu, state.tpus, state.born, state.base, state.level, state.first, state.last, state.drain, count,
    at = unpack_from(HEAD, text)
  local holders = {}
  for i = 1, count do
    local h = {}
    h.id, h.reserved, h.number, h.since, h.allotment, h.granted, h.till, at = unpack_from(HOLDER, text, at)
    holders[i] = h
  end
  state.holders = holders
  return state
end

local function reserve()
  local units = 0
  for _, h in ipairs(s.holders) do
    if h.reserved == 1 then units = units + h.allotment end
  end
  return units
end

local function last_till()
  local last = now
  for _, h in ipairs(s.holders) do last = max(last, h.till) end
  return last
end

local function save_state(key)
  local keep
  local last = max(last_till(), s.drain, s.base)
  if s.tpus == 0 then
    keep = max(last, s.last) - now
  else
    keep = last - now + ceil_div(clamp(s.level + reserve() * s.tpu), s.tpus)
  end
  local parts = {pack(HEAD, s.fence, s.tpu, s.tpus, s.born, s.base, s.level, s.first, s.last, s.drain,
    #s.holders)}
  for i, h in ipairs(s.holders) do
    parts[i + 1] = pack(HOLDER, h.id, h.reserved, h.number, h.since, h.allotment, h.granted, h.till)
  end
  redis.call('SET', key, table.concat(parts), 'PX', string.format('%.0f', max(ceil_div(keep, 1000), 1)))
end

local function decay(to)
  if to <= s.base then return end
  s.level = clamp(s.level - (to - s.base) * s.tpus)
  s.base = to
end

local function heal()
  local ahead = s.base - now
  if ahead <= SLACK then return end
  s.base = s.base - ahead
  s.born = min(s.born, now)
  s.drain = s.drain - ahead
  for _, h in ipairs(s.holders) do h.till = h.till - ahead end
end

local function set_allotment(h, allotment, reserved)
  local before = h.reserved == 1 and h.allotment or 0
  local after = reserved == 1 and allotment or 0
  if after < before then s.level = clamp(s.level + (before - after) * s.tpu) end
  h.allotment, h.reserved = allotment, reserved
end

local function give_units(units) s.level = clamp(s.level - units * s.tpu) end

local function expire()
  while true do
    local first
    for i, h in ipairs(s.holders) do
      if not first or h.till < s.holders[first].till then first = i end
    end
    if not first or s.holders[first].till > now then return end
    decay(s.holders[first].till)
    set_allotment(s.holders[first], 0, 0)
    table.remove(s.holders, first)
  end
end

local function carry()
  if s.tpu ~= terms.tpu then
    local rest = fmod(s.level, s.tpu)
    local product = rest * terms.tpu
    local part = product < EXACT and ceil_div(product, s.tpu) or terms.tpu
    s.level = clamp((s.level - rest) / s.tpu * terms.tpu + part)
  end
  s.tpu, s.tpus = terms.tpu, terms.tpus
end

-- The window that holds `now`; nil when neither of the caller's does.
local function window_at()
  if not terms.window then return 0, 0 end
  if not terms.calendar then
    local first = now - fmod(now + terms.w1, terms.period)
    return first, first + terms.period
  end
  if terms.w1 <= now and now < terms.w2 then return terms.w1, terms.w2 end
  if terms.w3 <= now and now < terms.w4 then return terms.w3, terms.w4 end
end

local function advance(first, last)
  heal()
  expire()
  decay(now)
  if s.fence ~= terms.fence then carry() end
  if terms.window then
    if s.last <= now then
      s.level, s.first, s.last = 0, first, last
    elseif s.fence ~= terms.fence or s.first > now + SLACK then
      s.first, s.last = first, last
    end
  end
  s.fence = terms.fence
end

local function capacity() return max((terms.burst - reserve()) * s.tpu, CAPACITY_MIN) end
local function available() return max(math.floor((capacity() - s.level) / s.tpu), 0) end
local function wait(wanted)
  if s.level <= wanted then return 0 end
  if terms.window then return s.last - now end
  return ceil_div(s.level - wanted, s.tpus) + s.base - now
end

local function find(id)
  for i, h in ipairs(s.holders) do
    if h.id == id then return h, i end
  end
end

local function adapt(holder, left, want)
  local holders = #s.holders
  local half = floor_div(terms.burst, 2)
  local share = floor_div(half, holders)
  local target = min(max(want, 0), share)
  local allotment = holder.allotment
  if left > allotment then
    allotment = left
  elseif target > allotment then
    local others = 0
    for _, h in ipairs(s.holders) do
      if h ~= holder then others = others + h.allotment end
    end
    local room = max(half - others - allotment, 0)
    allotment = allotment + min(target - allotment, room, floor_div(available(), 2 * holders))
  elseif allotment > share or 2 * target <= allotment then
    allotment = max(target, left)
  end
  set_allotment(holder, allotment, terms.reserved)
end

local function refill(key, id, number, since, applied, left, want, term)
  local function refuse(status) return pack(REPLY, status, number, since, 0, 0, 0, 0, 0, 0, floor_div(term, 4)) end
  local first, last = window_at()
  if not first then return refuse(OTHER_WINDOW) end
  advance(first, last)
  local holder = find(id)
  local registered = holder ~= nil
  if registered and number <= holder.number then return refuse(STALE) end
  if s.drain > now then return refuse(DRAINING) end
  if not registered then
    if #s.holders >= HOLDERS_MAX then return refuse(NO_ROOM) end
    holder = {id = id, reserved = terms.reserved, number = 0, since = now, allotment = 0, granted = 0, till = 0}
    s.holders[#s.holders + 1] = holder
  end
  local known = registered and holder.since == since
  if registered and applied < holder.number then give_units(holder.granted) end
  if registered and not known then holder.since = max(now, holder.since + 1) end
  if not known then left = 0 end

  adapt(holder, left, want)
  local holders = #s.holders
  local room = holder.allotment - left
  local there = available()
  local units = min(room, there, max(floor_div(there, 2 * holders), 1))
  s.level = s.level + units * s.tpu
  holder.number, holder.granted, holder.till = number, units, now + term
  if terms.window then holder.till = min(holder.till, s.last) end

  local retry = 0
  if units == 0 and room > 0 then
    retry = wait(capacity() - s.tpu)
  elseif holder.allotment == 0 then
    retry = floor_div(term, 4)
  end
  local reply = pack(REPLY, GRANTED, number, holder.since, units, holder.allotment, holder.till - now, holders,
    available(), wait(0), retry)
  save_state(key)
  return reply
end

local function yes(done) return pack(REPLY, done and 1 or 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) end

local function give_back(key, id, number, since, applied, left)
  local first, last = window_at()
  if not first then return yes(false) end
  advance(first, last)
  local holder, place = find(id)
  local nothing_known = since == 0 and left == 0
  if not holder or number <= holder.number or (since ~= holder.since and not nothing_known) then return yes(false) end
  local unapplied = applied < holder.number and holder.granted or 0
  local units = min(left + unapplied, holder.allotment)
  set_allotment(holder, 0, 0)
  give_units(units)
  table.remove(s.holders, place)
  save_state(key)
  return yes(true)
end

local function take(key, cost, peek)
  local first, last = window_at()
  if not first then return pack(REPLY, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0) end
  advance(first, last)
  local capacity_now, set_apart = capacity(), reserve()
  local allowed, retry = false, 0
  if cost == 0 then
    allowed = true
  elseif cost > terms.burst then
    retry = -1
  elseif cost > terms.burst - set_apart then
    local wanted = capacity_now - cost * s.tpu
    retry = max(ceil_div(s.level - wanted, s.tpus) + s.base - now, last_till() - now)
  else
    retry = wait(capacity_now - cost * s.tpu)
    allowed = retry == 0
  end
  local a, b, at = 0, 0, 0
  local charged = allowed and cost > 0 and not peek
  if charged then
    s.level = s.level + cost * s.tpu
    a, b, at = terms.window and s.first or cost, terms.fence, s.base
  end
  local reply = pack(REPLY, 0, allowed and 1 or 0, available(), wait(0), retry, a, b, at, 0, 0)
  if charged then
    save_state(key)
  elseif not peek and not allowed and cost <= terms.burst and cost > terms.burst - set_apart and s.drain <= now then
    local last_end = last_till()
    s.drain = last_end + (last_end - now)
    save_state(key)
  end
  return reply
end

local function put_back(key, a, b, at, units)
  local first, last = window_at()
  if not first or b ~= terms.fence then return yes(false) end
  advance(first, last)
  if at < s.born then return yes(false) end
  local ticks = units * s.tpu
  if not terms.window then
    ticks = min(ticks, a * s.tpu - max(s.base - at, 0) * s.tpus)
  elseif a ~= s.first then
    return yes(false)
  end
  ticks = min(ticks, s.level)
  if ticks <= 0 then return yes(false) end
  s.level = s.level - ticks
  save_state(key)
  return yes(true)
end

local function post(key, units)
  local first, last = window_at()
  if not first then return yes(false) end
  advance(first, last)
  s.level = clamp(s.level + units * s.tpu)
  save_state(key)
  return yes(true)
end

local replies = {}
for i, key in ipairs(KEYS) do
  local op, flags, a, b, c, d, e, f, g
  op, flags, terms.fence, terms.burst, terms.tpu, terms.tpus, terms.period, terms.w1, terms.w2, terms.w3, terms.w4,
    a, b, c, d, e, f, g = unpack_from(ITEM, ARGV[i])
  terms.window = flags % 2 == 1
  terms.calendar = math.floor(flags / 2) % 2 == 1
  terms.reserved = math.floor(flags / 4)
  s = load_state(redis.call('GET', key))
  if op == REFILL then replies[i] = refill(key, a, b, c, d, e, f, g)
  elseif op == GIVE_BACK then replies[i] = give_back(key, a, b, c, d, e)
  elseif op == TAKE then replies[i] = take(key, a, false)
  elseif op == PEEK then replies[i] = take(key, a, true)
  elseif op == PUT_BACK then replies[i] = put_back(key, a, b, c, d)
  elseif op == POST then replies[i] = post(key, a)
  elseif op == RESET then replies[i] = yes(redis.call('DEL', key) == 1)
  end
end
return table.concat(replies)
