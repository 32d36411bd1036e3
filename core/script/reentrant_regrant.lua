-- Grants a reentrant lock again to an entry, on a node that has forgotten it while a quorum has not.
-- KEYS 1 lock | 1 lock  2 fence counter
-- ARGV 1 token  2 ttl in ms  3 the hold's fencing token  4 fence counter's ttl in ms  5 owner
-- Reply {1, fence counter} granted | {0, ms until it expires or -1} another's | {3, what} another kind
local token, ttl, owner = ARGV[1], ARGV[2], ARGV[5]
local holder, other = look()
if other then return {3, other} end
if not holder then
  take(token, owner, ttl, counter)
elseif has(owner) then
  enter(token, owner, ttl, "0")
else
  return {0, redis.call("PTTL", KEYS[1])}
end
return {1, counter and raise(ARGV[3], ARGV[4]) or 0}
