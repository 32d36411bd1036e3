-- Reads who holds a read-write lock, and who waits for it.
-- KEYS 1 lock  2 queue  3 places  4 fence counter
-- Reply {1, last fencing token or 0, waiting clients, ms that the first has waited, and for each grant: token, ms until it expires, mode, owner}
--       {2, last fencing token or 0, waiting clients, ms that the first has waited} free | {3, type or kind} another kind
local other = look()
if other then return {3, other} end
local reply = {2, tonumber(redis.call("GET", counter) or "") or 0, waiting()}
for _, held in ipairs(grants()) do
  if held.mode ~= "i" then
    reply[1] = 1
    for _, value in ipairs({held.token, held.ends - now, held.mode, held.owner}) do reply[#reply + 1] = value end
  end
end
return reply
