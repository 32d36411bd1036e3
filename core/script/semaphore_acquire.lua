-- Takes a slot of a semaphore, if fewer are held than it has permits. Nobody is overtaken.
-- KEYS 1 lock | 1 lock  2 fence counters | 1 lock  2 queue  3 places  4 fence counters
-- ARGV 1 token  2 ttl in ms  3 fence counters' ttl in ms, 0 without fencing
--      4 proposed fencing token in µs since 1970 ("" proposes the server's time)
--      with a queue: 5 client ("" takes no place)  6 client's time of sending  7 ms that the place lives unheard of
--      then permits, then slot: the proposed one on one of several nodes, "" for the lowest that is free
--      then this client's tokens of attempts whose outcome it does not know
-- Reply {1, fencing token, slot} taken | {0, ...} others': see refusal(); without a queue its sixth is what slots are free here, as in "0,2"
--       {3, type or kind} another kind
local token, ttl, keep = ARGV[1], ARGV[2], ARGV[3]
local at = queue and 8 or 5
local permits, proposed = ARGV[at], ARGV[at + 1]
local other = look()
if other then return {3, other} end

local slot = slot_of(token, "")
for _, held in ipairs(forget(at + 2)) do
  if proposed == "" or held.slot == proposed then slot = slot or held.slot end
end
local head = queue and first()
if not slot and head then
  local number, served_slot = serve(token)
  if number then
    hold(member(served_slot, token), ttl)
    return {1, number, tonumber(served_slot)}
  end
  head = first()
end
if not slot and not head then slot = vacancy(permits, proposed) end
if slot then
  if head then leave(token) end
  return {1, add(slot, token, ttl, proposal(ARGV[4]), keep), tonumber(slot)}
end
if queue and ARGV[5] ~= "" then wait(token, ARGV[6], ARGV[7], ttl, keep, ARGV[5], "|" .. permits) end
return refuse(token, permits, proposed)
