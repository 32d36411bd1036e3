-- Removes an entry. With the last one the hold ends, and the lock is handed over to the first who waits, unless Redisson's waiters come first.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 owner
-- Reply {1} removed, {1, clients that heard of it} where that is published, {1, 0, why} if it could not be | {0} another's | {2} gone | {3, what} another kind
local holder, other = look()
if other then return {3, other} end
local left = leave_hold(ARGV[1])
if holder and not left then return {missing(holder, ARGV[2])} end
if left and left > 0 then return {1} end
pass_on(left)
if not left then return {2} end
local heard
if not queue and string.sub(holder, 1, 4) == "rl1:" then heard = tell(RELEASED .. KEYS[1], kind) end
return {1, heard or denied and 0, denied}
