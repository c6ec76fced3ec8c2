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
