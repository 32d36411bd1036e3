-- Grants a slot again to its holder, on a node that has forgotten it while a quorum has not.
-- KEYS 1 lock  2 fence counters (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 the holder's fencing token  4 fence counters' ttl in ms  5 permits  6 slot
-- Reply {1, the slot's fence counter} granted | {0, ms until it expires} another's | {3, type or kind} another kind
-- The permits may have become fewer since: it is a holder all the same.
local token, ttl, number, keep, _, slot = unpack(ARGV)
local other = look()
if other then return {3, other} end
for _, held in ipairs(grants()) do
  if held.slot == slot and held.token ~= token then return {0, held.ends - now} end
end
hold(member(slot, token), ttl)
return {1, counter and raise(slot, tonumber(number), keep) or 0}
