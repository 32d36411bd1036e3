-- Raises the fence counter to the token that a quorum is to agree on, if this attempt still holds the lock.
-- KEYS 1 lock  2 fence counter
-- ARGV 1 token  2 fencing token  3 fence counter's ttl in ms  4 mode, "r" or "w"  5 owner
-- Reply {1} raised | {0} others' | {2} gone | {3, type or kind} another kind
local token, number, keep, mode, owner = unpack(ARGV)
local other = look()
if other then return {3, other} end
if not redis.call("ZSCORE", KEYS[1], member(mode, owner, token)) then
  return {barred(mode, owner) and 0 or 2}
end
raise(tonumber(number), keep)
return {1}
