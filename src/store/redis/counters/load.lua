-- Which algorithm a state is of, the states of other rates, and what is kept of each. Ends the function that
-- arithmetic.lua begins.

local function Deny()
  return {
    Fresh = function() return {} end,
    Test = function(_, _, n) return n == 0, 0, 0, n == 0 and 0 or -1 end,
  }
end

local makers = {Bucket, Bucket, Bucket, Bucket, Window, Window, Counter, Strict, Log, Parallel, Deny}
local kinds = {}
local function Kind(form)
  local kind = kinds[form]
  if not kind then
    kind = makers[form]()
    kinds[form] = kind
    if form <= 4 then kinds[1], kinds[2], kinds[3], kinds[4] = kind, kind, kind, kind end
  end
  return kind
end
local FAMILIES = {1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6}

local function IsFaster(p1, q1, p2, q2)
  local whole, part = MulDiv(q1, p2, p1)
  return whole > q2 or (whole == q2 and part > 0)
end

-- The state's own meter, since when it is there, its past under other rates (or nil) and where its own
-- part begins.
local function Head(v)
  if #v < 29 then return nil end
  local form, a, b, c, born = read('>BI7I7I7I7', v)
  born = Min(born, now)
  if form < 128 then return {form, sub(v, 1, 22), a, b, c, c}, born, nil, 30 end
  if #v < 57 then return nil end
  form = form - 128
  local past = {read('>I7I7I7I7', v, 30)} -- When, until when it matters, and the fastest rate: a, b.
  if past[2] <= now then past = nil end
  return {form, char(form) .. sub(v, 2, 22), a, b, c, c}, born, past, 58
end

-- Of one rate: a bucket's debt may be too large for its own form, and is kept in the wide one.
local function IsSame(from, m)
  return from[2] == m[2] or
         (m[1] <= 4 and from[1] == m[1] + m[1] % 2 and sub(from[2], 2) == sub(m[2], 2))
end

-- The used units of `old` under another rate, from now on: with what a settle has to know of it.
local function Carry(from, old, m, x)
  local family = FAMILIES[m[1]]
  if family == 1 then
    local past = old.past
    local u, r = old.u, old.r
    if from[1] <= 2 and m[1] <= 2 then
      local part, rest = MulDiv(r, m[3], from[3])
      r = part + (rest > 0 and 1 or 0)
      if r == m[3] then u, r = u + 1, 0 end
    elseif r > 0 then
      u, r = u + 1, 0
    end
    local p, q = from[3], from[4]
    if (u > 0 or r > 0 or past) and (IsFaster(p, q, m[3], m[4]) or IsFaster(m[3], m[4], p, q)) then
      local ends = now + Micros(Max(old.u, from[5]), old.r, from)
      if past and not IsFaster(p, q, past[3], past[4]) then p, q = past[3], past[4] end
      past = {now, past and Max(past[2], ends) or ends, p, q}
    end
    return {u = u, r = r, past = past, returned = old.returned, places = ''}
  end
  local kind = Kind(from[1])
  local used = kind.Used(from, old)
  local s = Kind(m[1]).FromUsed(m, used, x)
  if used == 0 and not old.past then return s end
  local ends = now + kind.Span(from, old)
  s.past = {now, old.past and Max(old.past[2], ends) or ends, 0, 0}
  return s
end

local counters = {MulDiv = MulDiv, Age = Age, FromTicks = FromTicks, IsFaster = IsFaster, Kind = Kind,
                  Micros = Micros, MOST = MOST}

-- A counter from which nothing has been taken.
function counters.Fresh(m, x)
  local s = Kind(m[1]).Fresh(m, x)
  s.born = now
  return s
end

-- The state v (or false) under meter m. `carried`: it was written under another rate, or by a clock
-- that was ahead, and has to be written again: from now on it changes at this rate.
function counters.Load(m, v, x)
  local kind = Kind(m[1])
  if not v or m[1] == 11 then return counters.Fresh(m, x) end
  local from, born, past, at = Head(v)
  if not from or FAMILIES[from[1]] ~= FAMILIES[m[1]] then return counters.Fresh(m, x) end
  local s
  if IsSame(from, m) then
    s = kind.Parse(from[1] == m[1] and m or from, v, at, x)
    s.past = past
  elseif FAMILIES[m[1]] >= 4 then -- Logged units and leases are the same under any limit.
    s = kind.Parse(from, v, at)
    if kind.Prune then kind.Prune(m, s) end
    s.carried = true
  else
    local old = Kind(from[1]).Parse(from, v, at, nil)
    if not old then return counters.Fresh(m, x) end
    old.past = past
    s = Carry(from, old, m, x)
    s.carried = true
  end
  s.born = born
  return s
end

-- The state and the meter that it was written under; only m when there is none of its kind.
function counters.Open(m, v, x)
  local from, born, past, at
  if v then from, born, past, at = Head(v) end
  if not from or FAMILIES[from[1]] ~= FAMILIES[m[1]] then return m, nil end
  local same = IsSame(from, m)
  if same and from[1] == m[1] then from = m end
  local s = Kind(from[1]).Parse(from, v, at, same and x or nil)
  if not s then return m, nil end
  s.past, s.born = past, born
  return same and m or from, s
end

-- The state as a string, or nil when there is nothing to remember, and how long it has to last, in ms: one more
-- than the time rounded up, since the server counts from when the script began.
function counters.Save(m, s)
  local own, ttl, head = Kind(m[1]).Save(m, s)
  local past = s.past
  head = (head or m[2]) .. write('>I7', s.born)
  if past and past[2] > now then
    head = char(byte(head) + 128) .. sub(head, 2) .. write('>I7I7I7I7', unpack(past))
    ttl = Max(ttl, past[2] - now)
  end
  local returned = s.returned
  if returned then
    own = own .. write('>I7I7I7', returned[1], returned[2], returned[3]) .. s.places
    ttl = Max(ttl, returned[3] - now)
  end
  if ttl == 0 then return nil, 0 end
  return head .. own, ceil(ttl / 1000) + 1
end

-- State and expiry in one command; what is full again needs no key.
function counters.Store(k, m, s)
  local v, ms = counters.Save(m, s)
  if v then
    call('SET', KEYS[k], v, 'PX', text('%d', ms + spare_ms))
  elseif values[k] then
    call('DEL', KEYS[k])
  end
  values[k] = v or false
end

return counters
end
