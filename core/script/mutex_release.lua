-- Gives up a mutex that was held.
-- KEYS 1 lock
-- ARGV 1 token
-- Reply {1} released | {0} another's | {2} gone | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
if not holder then return {2} end
if holder ~= ARGV[1] then return {0} end
redis.call("DEL", KEYS[1])
return {1}
