-- Keeps a waiter's place, and takes the read-write lock if it is this waiter's turn.
-- KEYS 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms, 0 without fencing
--      4 client  5 client's time of sending  6 ms that the place lives unheard of  7 mode, "r" or "w"  8 owner
-- Reply {1, fencing token} it is a holder | {0, ms until it expires or -1, turn} others are: see refusal()
--       {2} it has no place | {3, type or kind} another kind
-- A reader that is one already is told a new fencing token: the counter may have gone on with other readers' meanwhile.
local token, ttl, keep, client, sent, life, mode, owner = unpack(ARGV)
local other = look()
if other then return {3, other} end
if extend(member(mode, owner, token), ttl) then -- it was handed over, and the message got lost
  return {1, fencing(holders() == owner, time(), keep)}
end
if redis.call("HEXISTS", places, token) == 0 then return {2} end
wait(token, sent, life, ttl, keep, client, "|" .. mode .. "|" .. owner)
local number = serve(token)
if number then
  hold(member(mode, owner, token), ttl)
  return {1, number}
end
return refuse(token, mode)
