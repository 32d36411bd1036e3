-- Removes what an attempt that did not win may have left. Unlike a release it never tells anybody.
-- KEYS 1 lock
-- ARGV 1 token
-- Reply {1} removed | {2} nothing of this attempt is here
if look(KEYS[1]) ~= ARGV[1] then return {2} end
redis.call("DEL", KEYS[1])
return {1}
