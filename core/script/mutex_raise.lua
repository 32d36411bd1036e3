-- Raises the fence counter to the token that a quorum is to agree on, if this attempt still holds the lock.
-- KEYS 1 lock  2 fence counter
-- ARGV 1 token  2 fencing token  3 fence counter's ttl in ms
-- Reply {1} raised | {0} another's | {2} gone | {3, type} another kind
local holder, other = look(KEYS[1])
if other then return {3, other} end
if not holder then return {2} end
if holder ~= ARGV[1] then return {0} end
if (tonumber(redis.call("GET", KEYS[2]) or "") or 0) < tonumber(ARGV[2]) then
  local keep = math.max(tonumber(ARGV[3]), redis.call("PTTL", KEYS[2]))
  redis.call("SET", KEYS[2], ARGV[2], "PX", string.format("%.0f", keep))
end
return {1}
