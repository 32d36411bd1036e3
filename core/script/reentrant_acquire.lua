-- Takes a reentrant lock that is free, or enters it again: its owner is not kept waiting by those who wait for his release.
-- KEYS 1 lock | 1 lock  2 fence counter | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms, 0 without fencing
--      4 proposed fencing token in µs since 1970 ("" proposes the server's time)
--      with a queue: 5 client ("" takes no place)  6 client's time of sending  7 ms that the place lives unheard of
--      5 or 8 owner  6... or 9... this client's tokens of attempts whose outcome it does not know, which are removed
-- Reply {1, fencing token of the hold, entries} taken | {0, ...} another's: see refusal() | {3, what} another kind
local token, ttl, keep = ARGV[1], ARGV[2], ARGV[3]
local last = queue and 8 or 5
local owner, fenced = ARGV[last], counter and keep ~= "0"

local holder, other = look()
if other then return {3, other} end
local resumed -- the lock was held by nobody but an earlier attempt of this client
for i = last + 1, #ARGV do
  if ARGV[i] ~= token and leave_hold(ARGV[i]) == 0 then holder, resumed = nil, true end
end
if not holder and not resumed then
  local head = queue and first()
  if head and head ~= token then holder = hand_over(token) end
end
if not holder then
  take(token, owner, ttl, fenced)
  leave(token)
  return {1, fenced and fence(proposal(ARGV[4]), keep) or 0, 1}
end
if has(owner) then
  local number, count = enter(token, owner, ttl, keep)
  leave(token)
  return {1, number, count}
end
if queue and ARGV[5] ~= "" then wait(token, ARGV[6], ARGV[7], ttl, keep, ARGV[5], wanted(owner)) end
return refusal(token, holder)
