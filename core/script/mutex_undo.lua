-- Removes what an attempt that did not win may have left: its place, and the lock, which the first who waits gets then.
-- Unlike a release it tells nobody else.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token
-- Reply {1} removed | {2} nothing of this attempt is here
local holder, other = look(KEYS[1])
local held = holder == ARGV[1]
if held then redis.call("DEL", KEYS[1]) end
local left = leave(ARGV[1]) -- before the hand-over, lest the lock goes back to it
if held or not holder and not other then pcall(hand_over) end
return {(held or left) and 1 or 2}
