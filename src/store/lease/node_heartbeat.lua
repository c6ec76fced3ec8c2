-- NodeRegistry::Beat and Leave (node_share.h) on the server: KEYS[1] is the sorted set of nodes by
-- the microsecond of their last heartbeat; ARGV: the node, how long a silent one counts (µs), and
-- 1 for a node that leaves. Returns how many nodes there are.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

if ARGV[3] == '1' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2]))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(ARGV[2] / 1000) + 1000))
return redis.call('ZCARD', KEYS[1])
