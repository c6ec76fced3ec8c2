-- Everything beyond a bucket under one unchanged rate is in this function, up to the end of load.lua. It is
-- called only where it is needed, since a function costs the server something each time a script makes it.
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
