-- Takes a read-write lock away from the holder with this digest, and hands it over to those at the head of the queue whom it is free for
-- then, or tells those who wait.
-- KEYS 1 lock | 1 lock  2 queue  3 places  4 fence counter
-- ARGV 1 SHA-1 in hex of the random part of the token of one of its grants
-- Reply {1} removed | {0} others' | {2} free | {3, type or kind} another kind
local other = look()
if other then return {3, other} end
return force(ARGV[1])
