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
