-- Counters in Redis or Valkey: what decide.lua and settle.lua share. Put in front of each of them.
--
-- Time is the server's, in whole microseconds, read once for each call by the next line, which tests
-- replace. spare_ms is what they add to every expiry, so that keys outlive a time that stands still.
local time, spare_ms = redis.call('TIME'), 0
local now = time[1] * 1000000 + time[2]

-- Numbers are whole and below 2^53, so a double holds them exactly. A state is a string: a descriptor
-- of the rate that it was written under (22 bytes: the form, then a, b and c), for a while after the
-- rate has changed what it came from (28 bytes; 128 is added to the form), then the form's own part,
-- and of a bucket that gave something back, for as long as charges may be open that were made before,
-- how much that was (core/refund_total.h; 21 bytes: since when it is counted, the units, until when;
-- and for each known place 21 more: its mark, when time has given it back, the units).
-- A meter is a list: form, descriptor, a, b, c, limit, tau (or false), edges (calendar only).
--   1 to 4  token bucket: units return at b / a for each microsecond; a is a unit and b a microsecond
--           in ticks, c the capacity. Odd forms keep the level in ticks, where that is exact in one
--           number, even ones in units and ticks. 1 and 2 carry parts of a unit over to another rate.
--   5, 6    fixed window of a microseconds; calendar window, a tells calendars apart
--   7       sliding counter of a microseconds
--   8       strict sliding counter: sub-buckets of a / b microseconds, c of them
--   9       sliding log of a microseconds
--   10, 11  parallel; limit 0
local floor, ceil = math.floor, math.ceil
local read, write = struct.unpack, struct.pack
local call, text = redis.call, string.format
local values = nil -- The states as the server has them; false where there is none.

-- A state further ahead than this can only be a fault of a clock: it is brought back to now, and what
-- was used stays used. It is written at once, or time would stand still for it.
local AHEAD_MAX = 1000000

-- The end of the calendar window that holds now, or nothing when the caller did not send it.
local function CalendarEnd(m)
  local edges = m[8]
  for i = 2, #edges do
    if now < edges[i] then return now >= edges[i - 1] and edges[i] or nil end
  end
end

local function IsStale(meters)
  for i = 1, #meters do
    if meters[i][1] == 6 and not CalendarEnd(meters[i]) then return true end
  end
end

-- Everything beyond a bucket under one unchanged rate. Made only by calls that need it, since a
-- function costs the server something each time a script makes it.
local function Counters()
  local sub, byte, char = string.sub, string.byte, string.char

  -- floor(x * y / z) and the remainder, exactly, for whole numbers below 2^53. A quotient beyond that
  -- is only known to be beyond.
  local function MulDiv(x, y, z)
    local product = x * y
    if product < 4503599627370496 then
      local quotient = floor(product / z)
      return quotient, product - quotient * z
    end
    local whole = floor(x / z)
    local rest = x - whole * z
    if rest < 0 then whole, rest = whole - 1, rest + z end
    local quotient, remainder, left, bit = 0, 0, y, 4503599627370496
    while bit > left do bit = bit / 2 end
    while bit >= 1 do
      quotient = quotient + quotient
      if remainder >= z - remainder then
        quotient, remainder = quotient + 1, remainder - (z - remainder)
      else
        remainder = remainder + remainder
      end
      if left >= bit then
        left = left - bit
        if remainder >= z - rest then
          quotient, remainder = quotient + 1, remainder - (z - rest)
        else
          remainder = remainder + rest
        end
      end
      bit = bit / 2
    end
    return whole * y + quotient, remainder
  end

  local function Max(x, y) return x > y and x or y end
  local function Min(x, y) return x < y and x or y end
  local MOST = 9007199254740991

  -- Token bucket. A level is used units u and a part of a unit r, in ticks.

  local function Micros(u, r, m)
    local q = m[4]
    local whole, rest = MulDiv(u, m[3], q)
    local more, part = MulDiv(r, 1, q)
    if part > q - rest then
      more = more + 2
    elseif part + rest > 0 then
      more = more + 1
    end
    return Min(whole + more, MOST)
  end

  -- The level after `elapsed` microseconds, which are below 0 when the clock has gone back a little.
  local function Age(u, r, elapsed, m)
    local p, q = m[3], m[4]
    if elapsed >= 0 then
      local du, dr = MulDiv(elapsed, q, p)
      if du > u or (du == u and dr >= r) then return 0, 0 end
      if dr > r then return u - du - 1, r + (p - dr) end
      return u - du, r - dr
    end
    local du, dr = MulDiv(-elapsed, q, p)
    if r >= p - dr then return u + du + 1, r - (p - dr) end
    return u + du, r + dr
  end

  local function FromTicks(ticks, m)
    local u = floor(ticks / m[3])
    return u, ticks - u * m[3]
  end

  local function Remaining(used, limit) return used >= limit and 0 or limit - used end

  local function Bucket()
    local function Describe(m, s)
      return Remaining(s.u + (s.r > 0 and 1 or 0), m[6]), Micros(s.u, s.r, m)
    end
    return {
      Fresh = function() return {u = 0, r = 0} end,
      Parse = function(m, v, at)
        local s = {}
        local written
        if m[1] % 2 == 1 then
          local ticks
          written, ticks = read('>I7I7', v, at)
          s.u, s.r = FromTicks(ticks, m)
        else
          written, s.u, s.r = read('>I7I7I7', v, at)
        end
        local returned = at + (m[1] % 2 == 1 and 14 or 21)
        if returned < #v then
          s.returned = {read('>I7I7I7', v, returned)}
          s.places = sub(v, returned + 21)
          if s.returned[3] <= now then s.returned = nil end
        end
        if written > now + AHEAD_MAX then written, s.carried = now, true end
        s.u, s.r = Age(s.u, s.r, now - written, m)
        return s
      end,
      Test = function(m, s, n)
        local limit = m[6]
        local room = limit - n
        local ok = n == 0 or s.u < room or (s.u == room and s.r == 0)
        local remaining, reset = Describe(m, s)
        return ok, remaining, reset, ok and 0 or (n > limit and -1 or Micros(s.u - room, s.r, m))
      end,
      Charge = function(m, s, n)
        s.u = s.u + n
        local remaining, reset = Describe(m, s)
        local mark = s.returned and s.returned[2]
        if m[1] % 2 == 1 then return remaining, reset, s.u * m[3] + s.r, nil, mark end
        return remaining, reset, s.u, s.r, mark
      end,
      Used = function(_, s) return s.u + (s.r > 0 and 1 or 0) end,
      FromUsed = function(_, used) return {u = used, r = 0} end,
      Overrun = function(_, s, units) s.u = Min(s.u + units, MOST) end,
      Save = function(m, s)
        local ttl = Micros(s.u, s.r, m)
        if m[1] % 2 == 0 or s.u * m[3] > 4503599627370496 then
          return write('>I7I7I7', now, s.u, s.r), ttl, char(byte(m[2]) + m[1] % 2) .. sub(m[2], 2)
        end
        return write('>I7I7', now, s.u * m[3] + s.r), ttl
      end,
    }
  end

  -- Fixed and calendar windows: a count and the end of its window, which names it.
  local function Window()
    local function End(m, x)
      if m[1] == 6 then return CalendarEnd(m) end
      return now - (now + x) % m[3] + m[3]
    end
    local function Test(m, s, n)
      local ok = n == 0 or s.count <= m[6] - n
      local left = s.ends - now
      return ok, Remaining(s.count, m[6]), s.count > 0 and left or 0,
             ok and 0 or (n > m[6] and -1 or left)
    end
    return {
      Fresh = function(m, x) return {ends = End(m, x), count = 0} end,
      Parse = function(m, v, at, x)
        local s = {}
        s.ends, s.count = read('>I7I7', v, at)
        local ends
        if x then
          ends = End(m, x)
        else -- Under a meter that only the state tells of: windows follow each other.
          ends = s.ends
          if m[1] == 5 and now >= ends then ends = ends + (floor((now - ends) / m[3]) + 1) * m[3] end
          if m[1] == 6 and now >= ends then return nil end
          return {ends = ends, count = ends == s.ends and s.count or 0}
        end
        if s.ends < ends then return {ends = ends, count = 0} end
        local begins = m[1] == 5 and s.ends - m[3] or ends
        if s.ends > ends and begins > now + AHEAD_MAX then s.ends, s.carried = ends, true end
        return s
      end,
      Test = Test,
      Charge = function(m, s, n)
        s.count = s.count + n
        return Remaining(s.count, m[6]), s.ends - now, s.ends
      end,
      Used = function(_, s) return now < s.ends and s.count or 0 end,
      FromUsed = function(m, used, x) return {ends = End(m, x), count = used} end,
      Refund = function(_, s, units, a)
        if a ~= s.ends then return false end
        s.count = Max(s.count - units, 0)
        return true
      end,
      Overrun = function(_, s, units) s.count = Min(s.count + units, MOST) end,
      -- Until a charge under this meter counts no more, at most.
      Span = function(_, s) return s.ends - now end,
      Save = function(_, s)
        return write('>I7I7', s.ends, s.count), s.count > 0 and s.ends - now or 0
      end,
    }
  end

  -- Sliding counter: the start of its window, the count of that and of the one before.
  local function Counter()
    local function Elapsed(s) return Max(now - s.starts, 0) end
    local function Describe(m, s)
      local w, e = m[3], Elapsed(s)
      local before = e == 0 and s.starts - now or 0
      local faded, part = MulDiv(s.previous, w - e, w)
      local room = m[6] - s.current - faded - (part > 0 and 1 or 0)
      local reset = s.current > 0 and before + 2 * w - e or (s.previous > 0 and before + w - e or 0)
      return Max(room, 0), reset
    end
    local function Save(m, s)
      local _, ttl = Describe(m, s)
      return write('>I7I7I7', s.starts, s.current, s.previous), ttl
    end
    return {
      Fresh = function(m) return {starts = now - now % m[3], current = 0, previous = 0} end,
      Parse = function(m, v, at)
        local s = {}
        s.starts, s.current, s.previous = read('>I7I7I7', v, at)
        local starts = now - now % m[3]
        if s.starts < starts then
          return {starts = starts, current = 0,
                  previous = s.starts + m[3] == starts and s.current or 0}
        end
        if s.starts > now + AHEAD_MAX then s.starts, s.carried = starts, true end
        return s
      end,
      Test = function(m, s, n)
        local w, e, limit = m[3], Elapsed(s), m[6]
        local before = e == 0 and s.starts - now or 0
        local spare = limit - s.current - n
        local faded, part = MulDiv(s.previous, w - e, w)
        local ok = n == 0 or faded < spare or (faded == spare and part == 0)
        local remaining, reset = Describe(m, s)
        local retry = 0
        if ok then
          retry = 0
        elseif n > limit then
          retry = -1
        elseif spare >= 0 then -- The previous window has to fade far enough.
          retry = before + w - e - MulDiv(w, spare, s.previous)
        else -- The current window has to end, and then to fade.
          retry = before + w - e + Max(w - (MulDiv(w, limit - n, s.current)), 0)
        end
        return ok, remaining, reset, retry
      end,
      Charge = function(m, s, n)
        s.current = s.current + n
        local remaining, reset = Describe(m, s)
        return remaining, reset, s.starts
      end,
      Used = function(m, s)
        local faded, part = MulDiv(s.previous, m[3] - Elapsed(s), m[3])
        return s.current + faded + (part > 0 and 1 or 0)
      end,
      FromUsed = function(m, used)
        return {starts = now - now % m[3], current = used, previous = 0}
      end,
      Refund = function(m, s, units, a)
        if a == s.starts then
          s.current = Max(s.current - units, 0)
        elseif a == s.starts - m[3] then
          s.previous = Max(s.previous - units, 0)
        else
          return false
        end
        return true
      end,
      Overrun = function(_, s, units) s.current = Min(s.current + units, MOST) end,
      Span = function(m) return 2 * m[3] end,
      Save = Save,
    }
  end

  -- Strict sliding counter: counts of sub-buckets, that of sub-bucket i at i mod c.
  local function Strict()
    local function Index(m) return (MulDiv(now, m[4], m[3])) end
    local function LeavesAfter(m, index)
      local whole, part = MulDiv(index + m[5], m[3], m[4])
      return whole + (part > 0 and 1 or 0) - now
    end
    local function Total(s)
      local total = 0
      for i = 1, #s.counts do total = total + s.counts[i] end
      return total
    end
    local function Fresh(m)
      local s = {index = Index(m), counts = {}}
      for i = 1, m[5] do s.counts[i] = 0 end
      return s
    end
    -- Whether n passes, the units over the limit, and when the last sub-bucket leaves, and the one
    -- with which enough has left.
    local function Waits(m, s, excess)
      local reset, retry = 0, 0
      for index = Max(s.index - m[5] + 1, 0), s.index do
        local count = s.counts[index % m[5] + 1]
        if count > 0 then
          reset = LeavesAfter(m, index)
          if excess > 0 then retry = reset end
          excess = excess - count
        end
      end
      return reset, retry
    end
    return {
      Fresh = Fresh,
      Parse = function(m, v, at)
        local size = m[5]
        local s = {counts = {read('>' .. string.rep('I7', size), v, at + 7)}}
        s.counts[size + 1] = nil -- The place after them.
        s.index = read('>I7', v, at)
        local index = Index(m)
        if s.index < index then
          for i = 0, Min(index - s.index, size) - 1 do s.counts[(index - i) % size + 1] = 0 end
          s.index = index
        elseif LeavesAfter(m, s.index - size) > AHEAD_MAX then
          local total = Total(s)
          s = Fresh(m)
          s.counts[s.index % size + 1] = total
          s.carried = true
        end
        return s
      end,
      Test = function(m, s, n)
        local total, limit = Total(s), m[6]
        local ok = n == 0 or total <= limit - n
        local reset, retry = Waits(m, s, ok and 0 or total - (limit - n))
        return ok, Remaining(total, limit), reset, n > limit and -1 or retry
      end,
      Charge = function(m, s, n)
        local at = s.index % m[5] + 1
        s.counts[at] = s.counts[at] + n
        return Remaining(Total(s), m[6]), LeavesAfter(m, s.index), s.index
      end,
      Used = function(_, s) return Total(s) end,
      FromUsed = function(m, used)
        local s = Fresh(m)
        s.counts[s.index % m[5] + 1] = used
        return s
      end,
      Refund = function(m, s, units, a)
        if a > s.index or a <= s.index - m[5] then return false end
        local at = a % m[5] + 1
        s.counts[at] = Max(s.counts[at] - units, 0)
        return true
      end,
      Overrun = function(m, s, units)
        local at = s.index % m[5] + 1
        s.counts[at] = s.counts[at] + Min(units, MOST - Total(s))
      end,
      Span = function(m, s) return LeavesAfter(m, s.index) end,
      Save = function(m, s)
        local ttl = Waits(m, s, 0)
        return write('>I7' .. string.rep('I7', m[5]), s.index, unpack(s.counts)), ttl
      end,
    }
  end

  -- Sliding log: runs of (time, units), the latest apart, the others as 14 bytes each in a string that
  -- starts to count at `head`.
  local function Log()
    local function Prune(m, s)
      local gone = now - m[3]
      while s.head <= #s.runs do
        local at, units = read('>I7I7', s.runs, s.head)
        if at > gone then break end
        s.total = s.total - units
        s.head = s.head + 14
      end
      if s.units > 0 and s.at <= gone then s.total, s.units = 0, 0 end
    end
    local function Append(s, units)
      if s.units > 0 and s.at >= now then
        s.units = s.units + units
      else
        if s.units > 0 then s.runs = s.runs .. write('>I7I7', s.at, s.units) end
        s.at, s.units = now, units
      end
      s.total = s.total + units
    end
    local function Reset(m, s) return s.total > 0 and s.at + m[3] - now or 0 end
    return {
      Prune = Prune,
      Fresh = function() return {total = 0, at = 0, units = 0, runs = '', head = 1} end,
      Parse = function(m, v, at)
        local s = {head = 1}
        local first
        s.total, s.at, s.units, first = read('>I7I7I7', v, at)
        s.runs = sub(v, first)
        if s.at > now + AHEAD_MAX then s.at, s.units, s.runs, s.carried = now, s.total, '', true end
        Prune(m, s)
        return s
      end,
      Test = function(m, s, n)
        local limit = m[6]
        local ok = n == 0 or s.total <= limit - n
        local retry = 0
        if not ok and n > limit then
          retry = -1
        elseif not ok then
          local excess, head = s.total - (limit - n), s.head
          while excess > 0 and head <= #s.runs do
            local at, units = read('>I7I7', s.runs, head)
            excess, retry, head = excess - units, at + m[3] - now, head + 14
          end
          if excess > 0 then retry = s.at + m[3] - now end
        end
        return ok, Remaining(s.total, limit), Reset(m, s), retry
      end,
      Charge = function(m, s, n)
        Append(s, n)
        return m[6] - s.total, Reset(m, s), s.at
      end,
      Refund = function(_, s, units, a)
        if s.units > 0 and s.at == a then
          local back = Min(units, s.units)
          s.units, s.total = s.units - back, s.total - back
          if s.units == 0 and s.head <= #s.runs then
            s.at, s.units = read('>I7I7', s.runs, #s.runs - 13)
            s.runs = sub(s.runs, 1, #s.runs - 14)
          end
          return back > 0
        end
        local low, high = 0, (#s.runs - s.head + 1) / 14
        while low < high do
          local middle = floor((low + high) / 2)
          if read('>I7', s.runs, s.head + middle * 14) < a then low = middle + 1 else high = middle end
        end
        local place = s.head + low * 14
        if place > #s.runs then return false end
        local at, held = read('>I7I7', s.runs, place)
        if at ~= a then return false end
        local back = Min(units, held)
        local left = held > back and write('>I7I7', at, held - back) or ''
        s.runs = sub(s.runs, s.head, place - 1) .. left .. sub(s.runs, place + 14)
        s.head = 1
        s.total = s.total - back
        return back > 0
      end,
      Overrun = function(_, s, units)
        units = Min(units, MOST - s.total)
        if units > 0 then Append(s, units) end
      end,
      Save = function(m, s)
        return write('>I7I7I7', s.total, s.at, s.units) .. sub(s.runs, s.head), Reset(m, s)
      end,
    }
  end

  -- Parallel: leases of (id, units, end), 22 bytes each. x: an id of 8 bytes and a time to live.
  local function Parallel()
    local function Find(s, id)
      for i = 1, #s do
        if s[i].id == id then return i end
      end
    end
    return {
      Fresh = function() return {used = 0} end,
      Parse = function(_, v, at)
        local s = {used = 0}
        while at <= #v do
          local id, units, ends
          id, units, ends, at = read('>c8I7I7', v, at)
          if ends > now then
            s[#s + 1] = {id = id, units = units, ends = ends}
            s.used = s.used + units
          end
        end
        return s
      end,
      Test = function(m, s, n, x)
        local limit = m[6]
        local ok = n == 0 or s.used <= limit - n or (x ~= '' and Find(s, sub(x, 1, 8)) ~= nil)
        return ok, Remaining(s.used, limit), s.used > 0 and -1 or 0,
               ok and 0 or (n > limit and -1 or 1000000)
      end,
      Charge = function(m, s, n, x)
        local id, ttl = read('>c8I7', x)
        if not Find(s, id) then
          s[#s + 1] = {id = id, units = n, ends = now + ttl}
          s.used = s.used + n
        end
        return Remaining(s.used, m[6]), -1, 0
      end,
      Release = function(s, id)
        local at = Find(s, id)
        if at then s.used = s.used - table.remove(s, at).units end
        return at ~= nil
      end,
      Renew = function(s, id, ttl)
        local at = Find(s, id)
        if at then s[at].ends = now + ttl end
        return at ~= nil
      end,
      Save = function(_, s)
        local parts, last = {}, now
        for i = 1, #s do
          parts[i] = write('>c8I7I7', s[i].id, s[i].units, s[i].ends)
          last = Max(last, s[i].ends)
        end
        return table.concat(parts), last - now
      end,
    }
  end

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

  -- The state's own meter, its past under other rates (or nil) and where its own part begins.
  local function Head(v)
    if #v < 22 then return nil end
    local form, a, b, c = read('>BI7I7I7', v)
    if form < 128 then return {form, sub(v, 1, 22), a, b, c, c}, nil, 23 end
    if #v < 50 then return nil end
    form = form - 128
    local past = {read('>I7I7I7I7', v, 23)} -- When, until when it matters, and the fastest rate: a, b.
    if past[2] <= now then past = nil end
    return {form, char(form) .. sub(v, 2, 22), a, b, c, c}, past, 51
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

  -- The state v (or false) under meter m. `carried`: it was written under another rate, or by a clock
  -- that was ahead, and has to be written again: from now on it changes at this rate.
  function counters.Load(m, v, x)
    local kind = Kind(m[1])
    if not v or m[1] == 11 then return kind.Fresh(m, x) end
    local from, past, at = Head(v)
    if not from or FAMILIES[from[1]] ~= FAMILIES[m[1]] then return kind.Fresh(m, x) end
    if IsSame(from, m) then
      local s = kind.Parse(from[1] == m[1] and m or from, v, at, x)
      s.past = past
      return s
    end
    if FAMILIES[m[1]] >= 4 then -- Logged units and leases are the same under any limit.
      local s = kind.Parse(from, v, at)
      if kind.Prune then kind.Prune(m, s) end
      s.carried = true
      return s
    end
    local old = Kind(from[1]).Parse(from, v, at, nil)
    if not old then return kind.Fresh(m, x) end
    old.past = past
    local s = Carry(from, old, m, x)
    s.carried = true
    return s
  end

  -- The state and the meter that it was written under; only m when there is none of its kind.
  function counters.Open(m, v, x)
    local from, past, at
    if v then from, past, at = Head(v) end
    if not from or FAMILIES[from[1]] ~= FAMILIES[m[1]] then return m, nil end
    local same = IsSame(from, m)
    if same and from[1] == m[1] then from = m end
    local s = Kind(from[1]).Parse(from, v, at, same and x or nil)
    if not s then return m, nil end
    s.past = past
    return same and m or from, s
  end

  -- The state as a string, or nil when there is nothing to remember, and how long it has to last, in ms: one more
  -- than the time rounded up, since the server counts from when the script began.
  function counters.Save(m, s)
    local own, ttl, head = Kind(m[1]).Save(m, s)
    local past = s.past
    head = head or m[2]
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
