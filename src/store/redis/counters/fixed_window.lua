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
