-- Keeps a waiter's place, and takes a slot of the semaphore if it is this waiter's turn.
-- KEYS 1 lock  2 queue  3 places  4 fence counters
-- ARGV 1 token  2 ttl in ms  3 fence counters' ttl in ms, 0 without fencing
--      4 client  5 client's time of sending  6 ms that the place lives unheard of  7 permits  8 "", for any slot
-- Reply {1, fencing token, slot} it is a holder | {0, ms until a slot expires or -1, turn} others are: see refusal()
--       {2} it has no place | {3, type or kind} another kind
local token, ttl, keep, client, sent, life, permits, slot = unpack(ARGV)
local other = look()
if other then return {3, other} end
local held = slot_of(token, slot)
if held then -- it was handed over, and the message got lost
  extend(member(held, token), ttl)
  if keep == "0" then return {1, 0, tonumber(held)} end
  return {1, last_of(held) or raise(held, time(), keep), tonumber(held)}
end
if redis.call("HEXISTS", places, token) == 0 then return {2} end
wait(token, sent, life, ttl, keep, client, "|" .. permits)
local number
number, held = serve(token)
if number then
  hold(member(held, token), ttl)
  return {1, number, tonumber(held)}
end
return refuse(token, permits, slot)
