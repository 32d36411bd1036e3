-- Takes a mutex that is free, or that an earlier attempt of this client took without learning so. Nobody is overtaken.
-- KEYS 1 lock | 1 lock  2 fence counter | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms, 0 without fencing
--      4 proposed fencing token in µs since 1970 ("" proposes the server's time)
--      with a queue: 5 client ("" takes no place)  6 client's time of sending  7 ms that the place lives unheard of
--      5... or 8... this client's tokens of attempts whose outcome it does not know
-- Reply {1, fencing token} taken | {0, ...} another's: see refusal() | {3, type} another kind
local token, ttl, keep = ARGV[1], ARGV[2], ARGV[3]

local function ours(holder)
  for i = queue and 8 or 5, #ARGV do
    if holder == ARGV[i] then return true end
  end
  return holder == token
end

local head = queue and first()
if head and head ~= token or not redis.call("SET", KEYS[1], token, "NX", "PX", ttl) then
  local holder, other = look(KEYS[1])
  if other then return {3, other} end
  holder = holder or hand_over(token)
  if holder and not ours(holder) then
    if queue and ARGV[5] ~= "" then wait(token, ARGV[6], ARGV[7], ttl, keep, ARGV[5]) end
    return refusal(token, holder)
  end
  if holder == token then -- an earlier request for it, or a renewal, was faster
    lengthen(KEYS[1], ttl)
  else
    redis.call("SET", KEYS[1], token, "PX", ttl)
  end
end
if head then leave(token) end
if not counter or keep == "0" then return {1, 0} end
return {1, fence(proposal(ARGV[4]), keep)}
