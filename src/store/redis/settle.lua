-- Settles, renewals and resets, in order. KEYS: the counters, each once, and perhaps a marker.
-- ARGV[1], MessagePack:
--   {meters, the marker's place in KEYS or 0, how long it is kept in ms, then for each item
--    op (0 settle, 1 renew, 2 reset), key, meter, reserved (renew: time to live), actual,
--    the receipt's two numbers, its time and its mark, x}
-- x is a fixed window's offset or a lease's id. Answer, MessagePack: {now (below 0: stale, nothing was
-- done), then 1 or 0 for each item}. The marker keeps the answer, so that a repeat is answered alike.
local argument = cmsgpack.unpack(ARGV[1])
local meters, marker = argument[1], argument[2]
-- Only a debt may have to open a new window of a calendar.
for i = 4, #argument, 10 do
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

-- What came back since a charge was made, less what came back of charges after it.
local function Since(s, at, mark, ends)
  local returned, places = s.returned, s.places
  if not returned then return 0 end
  if at < returned[1] and mark > 0 then return returned[2] end -- From an earlier count.
  local units = returned[2] - mark
  for i = 1, #places, 21 do
    local other, others_end, back = struct.unpack('>I7I7I7', places, i)
    if other > mark or (other == mark and others_end > ends) then units = units - back end
  end
  return units
end

local PLACES_MAX = 8

-- The two neighbours with the fewest units become one.
local function MergeSmallest(places)
  local smallest = 1
  for i = 2, #places - 1 do
    if places[i][3] + places[i + 1][3] < places[smallest][3] + places[smallest + 1][3] then
      smallest = i
    end
  end
  places[smallest][3] = places[smallest][3] + places[smallest + 1][3]
  table.remove(places, smallest + 1)
end

local function Remember(m, s, units, at, mark, ends)
  local returned = s.returned or {now, 0, 0}
  local level_ends = now + counters.Micros(s.u, s.r, m)
  if level_ends < returned[3] then level_ends = returned[3] end
  local before = s.returned and s.places or ''
  s.returned, s.places = {returned[1], returned[2] + units, level_ends}, before
  if at < returned[1] and mark > 0 then return end
  local places, mine = {}, {mark, ends, units}
  for i = 1, #before, 21 do
    local place = {struct.unpack('>I7I7I7', before, i)}
    if mine and (place[1] > mark or (place[1] == mark and place[2] > ends)) then
      places[#places + 1], mine = mine, nil
    end
    if place[2] > now then places[#places + 1] = place end
  end
  places[#places + 1] = mine
  if #places > PLACES_MAX then MergeSmallest(places) end
  for i = 1, #places do places[i] = struct.pack('>I7I7I7', unpack(places[i])) end
  s.places = table.concat(places)
end

local function RefundBucket(m, from, s, units, a, b, at, mark)
  local u, r = a, b
  if m[1] % 2 == 1 then u, r = counters.FromTicks(a, m) end
  -- Under another rate places do not compare: of those that are kept none stays, and none is added.
  local ends, at_count = at + counters.Micros(u, r, m), at
  if from ~= m then at_count, mark, s.places = -1, 1, '' end
  u = u - Since(s, at_count, mark, ends)
  if u < 0 or (s.returned and s.returned[2] > counters.MOST / 2) then return false end
  local fastest = from
  local past = s.past
  -- A change is taken to have come a second later, since the rates of two nodes change one after the
  -- other.
  if past and past[1] + 1001049 >= at and
     counters.IsFaster(past[3], past[4], from[3], from[4]) then
    fastest = past
  end
  local back, part, last = units, 0, false
  if from == m and fastest == m then
    u, r = counters.Age(u, r, now - at, m)
    if u < units then back, part = u, r end
    if back == 0 and part == 0 then return false end
    last = u == s.u and r == s.r
  else
    back = Across(m, fastest, units, u, r, at)
    if back <= 0 then return false end
  end
  if not last then Remember(from, s, back + (part > 0 and 1 or 0), at_count, mark, ends) end
  if back > s.u or (back == s.u and part >= s.r) then
    s.u, s.r = 0, 0
  elseif part > s.r then
    s.u, s.r = s.u - back - 1, s.r + (from[3] - part)
  else
    s.u, s.r = s.u - back, s.r - part
  end
  return true
end

local function Refund(m, from, s, units, a, b, at, mark)
  local form = m[1]
  if form <= 4 then return RefundBucket(m, from, s, units, a, b, at, mark) end
  if b == 0 then return false end
  if form ~= 9 and (from ~= m or (s.past and s.past[1] + 1001049 >= at)) then return false end
  return counters.Kind(form).Refund(from, s, units, a)
end

local function Settle(k, m, reserved, actual, a, b, at, mark, x)
  if m[1] == 11 then return false end
  local delta = reserved - actual
  if delta == 0 and m[1] ~= 10 then return true end
  local from, s = counters.Open(m, values[k], m[1] ~= 6 and x or nil)
  local done
  if m[1] == 10 then
    done = s ~= nil and counters.Kind(10).Release(s, x)
  elseif delta > 0 then
    done = s ~= nil and at >= s.born and Refund(m, from, s, delta, a, b, at, mark)
  else
    s = s or counters.Fresh(m, x)
    counters.Kind(from[1]).Overrun(from, s, -delta)
    done = true
  end
  if done then counters.Store(k, from, s) end
  return done
end

local out = {now}
for i = 4, #argument, 10 do
  local op, k, m = argument[i], argument[i + 1], meters[argument[i + 2]]
  local x = argument[i + 9]
  local done
  if op == 0 then
    done = Settle(k, m, argument[i + 3], argument[i + 4], argument[i + 5], argument[i + 6],
                  argument[i + 7], argument[i + 8], x)
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
