-- Grants a mutex again to its holder, on a node that has forgotten it while a quorum has not.
-- KEYS 1 lock  2 fence counter (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 the holder's fencing token  4 fence counter's ttl in ms
-- Reply {1, fence counter} granted | {0, ms until it expires or -1} another's | {3, type} another kind
if not redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
  local holder, other = look(KEYS[1])
  if other then return {3, other} end
  if holder ~= ARGV[1] then return {0, redis.call("PTTL", KEYS[1])} end
  lengthen(KEYS[1], ARGV[2])
end
if not KEYS[2] then return {1, 0} end

local fence = math.max(tonumber(redis.call("GET", KEYS[2]) or "") or 0, tonumber(ARGV[3]))
local keep = math.max(tonumber(ARGV[4]), redis.call("PTTL", KEYS[2]))
redis.call("SET", KEYS[2], string.format("%.0f", fence), "PX", string.format("%.0f", keep))
return {1, fence}
