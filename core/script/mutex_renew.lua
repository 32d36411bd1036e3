-- Extends a lease. Never re-creates a key and never shortens what is left of one.
-- KEYS 1 lock  2 fence counter (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms
-- Reply {1} extended | {0} another's | {2} gone | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
if not holder then return {2} end
if holder ~= ARGV[1] then return {0} end
lengthen(KEYS[1], ARGV[2])
if KEYS[2] then lengthen(KEYS[2], ARGV[3]) end
return {1}
