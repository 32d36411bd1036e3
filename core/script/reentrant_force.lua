-- Takes a reentrant lock away from the hold with this digest, all its entries, and hands it over to the first who waits, or tells those who do.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 SHA-1 in hex of the random part of the hold's token (of the owner's name, if it is Redisson's)
-- Reply {1} removed | {0} another's | {2} free | {3, what} another kind
local holder, other = look()
if other then return {3, other} end
if holder then
  local secret = string.match(holder, SECRET) or holder
  if redis.sha1hex(secret) ~= ARGV[1] then return {0} end
  finish()
end
local next = pass_on(holder)
if holder and not next then tell(RELEASED .. KEYS[1], kind) end
return {holder and 1 or 2}
