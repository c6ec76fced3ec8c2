-- Counters in Redis or Valkey: what decide.lua and settle.lua share. The files of this folder are put in
-- front of each of them, in the order of embed_scripts.cmake. This one is all that a bucket under one
-- unchanged rate needs.
--
-- Time is the server's, in whole microseconds, read once for each call by the next line, which tests
-- replace. spare_ms is what they add to every expiry, so that keys outlive a time that stands still.
local time, spare_ms = redis.call('TIME'), 0
local now = time[1] * 1000000 + time[2]

-- Numbers are whole and below 2^53, so a double holds them exactly. A state is a string: a descriptor
-- of the rate that it was written under (22 bytes: the form, then a, b and c), since when the counter
-- is there (7 bytes: what was charged before, and lost or reset, is not given back), for a while after the
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
