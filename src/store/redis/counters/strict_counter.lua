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
