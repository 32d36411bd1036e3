-- Keeps a waiter's place, and takes the lock if it is this waiter's turn, or if its owner has it by now.
-- KEYS 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms, 0 without fencing
--      4 client  5 client's time of sending  6 ms that the place lives unheard of  7 owner
-- Reply {1, fencing token of the hold, entries} it is in | {0, ms until it expires or -1, turn} another is: see refusal()
--       {2} it has no place | {3, what} another kind
local token, ttl, keep, owner = ARGV[1], ARGV[2], ARGV[3], ARGV[7]
local holder, other = look()
if other then return {3, other} end
local granted = has(token) -- it was handed over, and the message got lost
if not granted then
  if redis.call("HEXISTS", places, token) == 0 then return {2} end
  wait(token, ARGV[5], ARGV[6], ttl, keep, ARGV[4], wanted(owner))
  holder = holder or hand_over(token)
  if not has(owner) then return refusal(token, holder) end
end
local number, count = enter(token, owner, ttl, keep)
if not granted then leave(token) end
return {1, number, count}
