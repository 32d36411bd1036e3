-- Takes a read-write lock in a mode in which it is free, or in which its owner may enter it again. Nobody is overtaken but by who enters again.
-- KEYS 1 lock | 1 lock  2 fence counter | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms, 0 without fencing
--      4 proposed fencing token in µs since 1970 ("" proposes the server's time)
--      with a queue: 5 client ("" takes no place)  6 client's time of sending  7 ms that the place lives unheard of
--      then mode, "r" or "w", without a queue also "w" and in how many ms this writer asks again: until then, if it is
--           readers who refuse it, nobody begins to read
--      then owner, not empty and without a "|"
--      then this client's tokens of attempts whose outcome it does not know
-- Reply {1, fencing token} taken; who enters again while it writes is told that of its hold
--       {0, ...} another's: see refusal() | {3, type or kind} another kind | {4} the owner reads, and can't write
local token, ttl, keep = ARGV[1], ARGV[2], ARGV[3]
local at = queue and 8 or 5
local mode, again = string.match(ARGV[at], "^([rw])(%d*)$")
local owner = ARGV[at + 1]
local other = look()
if other then return {3, other} end

local enters = false
for _, held in ipairs(forget(at + 2)) do
  enters = enters or held.mode == mode and held.owner == owner
end
local writer, last = holders()
local head = queue and first()
local intent = mode == "r" and not queue and redis.call("ZSCORE", KEYS[1], INTENT)
if not enters and last then
  enters = writer == owner or redis.call("ZSCORE", KEYS[1], member(mode, owner, token))
  if not enters and not writer and (mode == "w" or head or intent) and owns(owner) then
    if mode == "w" then
      leave(token)
      return {4}
    end
    enters = true
  end
end
if not enters and head then
  local number = serve(token)
  if number then
    hold(member(mode, owner, token), ttl)
    return {1, number}
  end
  head = first()
  writer, last = holders()
end
if enters or not head and not intent and free(mode, owner, writer, last) then
  if head then leave(token) end
  return {1, add(mode, owner, writer == owner, token, ttl, proposal(ARGV[4]), keep)}
end
if queue and ARGV[5] ~= "" then
  wait(token, ARGV[6], ARGV[7], ttl, keep, ARGV[5], "|" .. mode .. "|" .. owner)
elseif again ~= "" and not writer and not queue then
  hold(INTENT, again)
end
return refuse(token, mode)
