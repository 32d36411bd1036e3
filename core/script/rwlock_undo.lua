-- Removes what an attempt that did not win may have left: its place, and its grant, and hands over what is free then.
-- Unlike a release it tells nobody else.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 mode, "r" or "w"  3 owner
-- Reply {1} removed | {2} nothing of this attempt is here
local token, mode, owner = unpack(ARGV)
local other = look()
local held = not other and redis.call("ZREM", KEYS[1], member(mode, owner, token)) == 1
local placed = leave(token) -- before the hand-over, lest the lock goes back to it
if not other then pcall(serve) end
return {(held or placed) and 1 or 2}
