-- Grants a read-write lock again to its holder, on a node that has forgotten it while a quorum has not.
-- KEYS 1 lock  2 fence counter (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 the holder's fencing token  4 fence counter's ttl in ms  5 mode, "r" or "w"  6 owner
-- Reply {1, fence counter} granted | {0, ms until it expires} others' | {3, type or kind} another kind
local token, ttl, number, keep, mode, owner = unpack(ARGV)
local other = look()
if other then return {3, other} end
local ends = barred(mode, owner)
if ends then return {0, ends - now} end
hold(member(mode, owner, token), ttl)
return {1, counter and raise(tonumber(number), keep) or 0}
