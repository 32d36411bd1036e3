-- Gives up one grant of a read-write lock, and hands it over to those at the head of the queue whom it is free for then, or tells those
-- who wait, if anybody may get in now.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 mode, "r" or "w"  3 owner
-- Reply {1} released, {1, clients that heard of it} where that is published, {1, 0, why} if it could not be | {0} others' | {2} gone
--       {3, type or kind} another kind
local token, mode, owner = unpack(ARGV)
local other = look()
if other then return {3, other} end
local removed = redis.call("ZREM", KEYS[1], member(mode, owner, token)) == 1
local code = removed and 1 or barred(mode, owner) and 0 or 2
local heard
if queue then
  pcall(serve)
elseif removed and string.sub(token, 1, 4) == "rl1:" then
  local writer, last = holders()
  if not writer and (mode == "w" or not last) then heard = tell(RELEASED .. KEYS[1], kind .. " *") end
end
if not removed then return {code} end
return {1, heard or denied and 0, denied}
