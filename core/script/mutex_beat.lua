-- Keeps a waiter's place, and takes the mutex if it is this waiter's turn.
-- KEYS 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms, 0 without fencing
--      4 client  5 client's time of sending  6 ms that the place lives unheard of
-- Reply {1, fencing token} it is the holder | {0, ms until it expires or -1, turn} another is: see refusal()
--       {2} it has no place | {3, type} another kind
local token, ttl, keep = ARGV[1], ARGV[2], ARGV[3]
local holder, other = look(KEYS[1])
if other then return {3, other} end
if holder == token then -- it was handed over, and the message got lost
  lengthen(KEYS[1], ttl)
  if keep == "0" then return {1, 0} end
  return {1, tonumber(redis.call("GET", counter) or "") or fence(time(), keep)}
end
if redis.call("HEXISTS", places, token) == 0 then return {2} end
wait(token, ARGV[5], ARGV[6], ttl, keep, ARGV[4])
if not holder then
  local number
  holder, number = hand_over(token)
  if holder == token then
    lengthen(KEYS[1], ttl)
    return {1, number}
  end
end
return refusal(token, holder)
