-- Gives up a mutex that was held, and hands it over to the first who waits, or tells those who do.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token
-- Reply {1} released, {1, clients that heard of it} where that is published, {1, 0, why} if it could not be | {0} another's | {2} gone | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
if holder and holder ~= ARGV[1] then return {0} end
if holder then redis.call("DEL", KEYS[1]) end
local heard
if queue then
  pcall(hand_over)
elseif holder and string.sub(holder, 1, 4) == "rl1:" then
  heard = tell(RELEASED .. KEYS[1], "mutex")
end
if not holder then return {2} end
return {1, heard or denied and 0, denied}
