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
