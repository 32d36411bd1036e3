-- Reads who holds a mutex, and who waits for it.
-- KEYS 1 lock  2 queue  3 places  4 fence counter
-- Reply {1, token, ms until it expires or -1, last fencing token or 0, waiting clients, ms that the first has waited}
--       {2, last fencing token or 0, waiting clients, ms that the first has waited} free | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
local last = tonumber(redis.call("GET", counter) or "") or 0
if not holder then return {2, last, waiting()} end
return {1, holder, redis.call("PTTL", KEYS[1]), last, waiting()}
