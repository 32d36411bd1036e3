-- Reads who holds a mutex.
-- KEYS 1 lock  2 fence counter
-- Reply {1, token, ms until it expires or -1, last fencing token or 0} | {2, last fencing token or 0} free | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
local last = tonumber(redis.call("GET", KEYS[2]) or "") or 0
if not holder then return {2, last} end
return {1, holder, redis.call("PTTL", KEYS[1]), last}
