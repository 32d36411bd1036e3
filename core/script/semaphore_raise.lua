-- Raises the fence counter of a slot to the token that a quorum is to agree on, if this attempt still holds it.
-- KEYS 1 lock  2 fence counters
-- ARGV 1 token  2 fencing token  3 fence counters' ttl in ms  4 permits  5 slot
-- Reply {1} raised | {0} another's | {2} gone | {3, type or kind} another kind
local token, number, keep, _, slot = unpack(ARGV)
local other = look()
if other then return {3, other} end
local held = slot_of(token, slot)
if not held then return {missing(slot)} end
raise(held, tonumber(number), keep)
return {1}
