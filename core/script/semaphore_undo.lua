-- Removes what an attempt that did not win may have left: its place, and its slot, and hands over what is free then.
-- Unlike a release it tells nobody else.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counters
-- ARGV 1 token  2 permits  3 slot ("" if it is not known)
-- Reply {1} removed | {2} nothing of this attempt is here
local token, _, slot = unpack(ARGV)
local other = look()
local held = not other and slot_of(token, slot)
if held then redis.call("ZREM", KEYS[1], member(held, token)) end
local placed = leave(token) -- before the hand-over, lest a slot goes back to it
if not other then pcall(serve) end
return {(held or placed) and 1 or 2}
