-- Raises the fence counter to the token that a quorum is to agree on, if this attempt is still in the hold.
-- KEYS 1 lock  2 fence counter
-- ARGV 1 token  2 fencing token  3 fence counter's ttl in ms  4 owner
-- Reply {1} raised | {0} another's | {2} gone | {3, what} another kind
local holder, other = look()
if other then return {3, other} end
if not has(ARGV[1]) then return {missing(holder, ARGV[4])} end
raise(ARGV[2], ARGV[3])
return {1}
