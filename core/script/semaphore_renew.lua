-- Extends a lease. Never re-creates a grant and never shortens what is left of one.
-- KEYS 1 lock  2 fence counters (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 fence counters' ttl in ms  4 permits  5 slot
-- Reply {1} extended | {0} the slot is another's | {2} gone | {3, type or kind} another kind
local token, ttl, keep, _, slot = unpack(ARGV)
local other = look()
if other then return {3, other} end
local held = slot_of(token, slot)
if not held then return {missing(slot)} end
extend(member(held, token), ttl)
if counter then lengthen(counter, keep) end
return {1}
