-- Gives up a slot of a semaphore, and hands over what is free to the first who wait, or tells those who do.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counters
-- ARGV 1 token  2 permits  3 slot ("" if it is not known)
-- Reply {1} released, {1, clients that heard of it} where that is published, {1, 0, why} if it could not be | {0} the slot is another's
--       {2} gone | {3, type or kind} another kind
local token, _, slot = unpack(ARGV)
local other = look()
if other then return {3, other} end
local held = slot_of(token, slot)
local code = held and 1 or missing(slot)
if held then redis.call("ZREM", KEYS[1], member(held, token)) end
local heard
if queue then
  pcall(serve)
elseif held and string.sub(token, 1, 4) == "rl1:" then
  heard = tell(RELEASED .. KEYS[1], kind)
end
if not held then return {code} end
return {1, heard or denied and 0, denied}
