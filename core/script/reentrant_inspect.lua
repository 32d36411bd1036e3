-- Reads who holds a reentrant lock, and who waits for it.
-- KEYS 1 lock  2 queue  3 places  4 fence counter
-- Reply {1, token of the hold (of a foreign one its owner), ms until it expires or -1, last fencing token or 0, waiting clients, ms that the first has waited, owner, entries}
--       {2, last fencing token or 0, waiting clients, ms that the first has waited} free | {3, what} another kind
local holder, other = look()
if other then return {3, other} end
local last = tonumber(redis.call("GET", counter) or "") or 0
if not holder then return {2, last, waiting()} end
local owner = holder
for _, field in ipairs(redis.call("HKEYS", KEYS[1])) do
  if field ~= "tok" and not string.find(field, OURS) then owner = field end
end
local length, waited = waiting()
return {1, holder, redis.call("PTTL", KEYS[1]), last, length, waited, owner, tonumber(redis.call("HGET", KEYS[1], owner))}
