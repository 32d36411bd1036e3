-- Extends a lease. Never re-creates a grant and never shortens what is left of one.
-- KEYS 1 lock  2 fence counter (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms  4 mode, "r" or "w"  5 owner
-- Reply {1} extended | {0} others' | {2} gone | {3, type or kind} another kind
local token, ttl, keep, mode, owner = unpack(ARGV)
local other = look()
if other then return {3, other} end
if not extend(member(mode, owner, token), ttl) then
  return {barred(mode, owner) and 0 or 2}
end
if counter then lengthen(counter, keep) end
return {1}
