-- Removes what an attempt that did not win may have left: its place, and its entry; if that was the only one the first who waits gets the lock.
-- Unlike a release it tells nobody else of ours.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 token  2 owner
-- Reply {1} removed | {2} nothing of this attempt is here
local holder, other = look()
local left = not other and leave_hold(ARGV[1]) or nil
local placed = leave(ARGV[1]) -- before the hand-over, lest the lock goes back to it
if left == 0 or not holder and not other then pass_on(left) end
return {(left or placed) and 1 or 2}
