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
