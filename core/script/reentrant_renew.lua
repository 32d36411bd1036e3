-- Extends a lease. Never re-creates an entry and never shortens what is left of the hold.
-- KEYS 1 lock  2 fence counter (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms  4 owner
-- Reply {1} extended | {0} another's | {2} gone | {3, what} another kind
local holder, other = look()
if other then return {3, other} end
if not has(ARGV[1]) then return {missing(holder, ARGV[4])} end
lengthen(KEYS[1], ARGV[2])
if KEYS[2] then lengthen(KEYS[2], ARGV[3]) end
return {1}
