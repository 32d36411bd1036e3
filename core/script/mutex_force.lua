-- Takes a mutex away from the holder with this digest, and hands it over to the first who waits, or tells those who do.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 SHA-1 in hex of the random part of the holder's token (of the whole value, if another library wrote it)
-- Reply {1} removed | {0} another's | {2} free | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
if holder then
  if redis.sha1hex(string.match(holder, SECRET) or holder) ~= ARGV[1] then return {0} end
  redis.call("DEL", KEYS[1])
end
local ok, next = pcall(hand_over)
if holder and not (ok and next) then tell(RELEASED .. KEYS[1], "mutex") end
return {holder and 1 or 2}
