-- Reads who holds the slots of a semaphore, and who waits for one.
-- KEYS 1 lock  2 queue  3 places  4 fence counters
-- Reply {1, largest of the last fencing tokens or 0, waiting clients, ms that the first has waited, and for each grant:
--           token, ms until it expires, slot, the slot's last fencing token or 0}
--       {2, largest of the last fencing tokens or 0, waiting clients, ms that the first has waited} free | {3, type or kind} another kind
local other = look()
if other then return {3, other} end
local last = 0
for _, number in ipairs(redis.call("HVALS", counter)) do last = math.max(last, tonumber(number) or 0) end
local reply = {2, last, waiting()}
for _, held in ipairs(grants()) do
  reply[1] = 1
  for _, value in ipairs({held.token, held.ends - now, tonumber(held.slot), last_of(held.slot) or 0}) do reply[#reply + 1] = value end
end
return reply
