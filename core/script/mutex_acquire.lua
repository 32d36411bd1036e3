-- Takes a mutex that is free, or that an earlier attempt of this client took without learning so.
-- KEYS 1 lock  2 fence counter (left out without fencing)
-- ARGV 1 token  2 ttl in ms  3 fence counter's ttl in ms
--      4 proposed fencing token in µs since 1970 ("" proposes the server's time)
--      5... this client's tokens of attempts whose outcome it does not know
-- Reply {1, fencing token} taken | {0, ms until it expires or -1} another's | {3, type} another kind
local token, ttl = ARGV[1], ARGV[2]

local function ours(holder)
  for i = 5, #ARGV do
    if holder == ARGV[i] then return true end
  end
  return holder == token
end

if not redis.call("SET", KEYS[1], token, "NX", "PX", ttl) then
  local holder, other = look(KEYS[1])
  if other then return {3, other} end
  if not ours(holder) then return {0, redis.call("PTTL", KEYS[1])} end
  redis.call("SET", KEYS[1], token, "PX", ttl)
end
if not KEYS[2] then return {1, 0} end

local time = redis.call("TIME")
local proposed = time[1] * 1000000 + time[2]
if ARGV[4] ~= "" then
  local most = 60 * 1000000 -- a client's clock counts as far as it is near the server's
  proposed = math.min(math.max(tonumber(ARGV[4]), proposed - most), proposed + most)
end
local last = tonumber(redis.call("GET", KEYS[2]) or "") or 0
local fence = math.max(last + 1, proposed)
local keep = math.max(tonumber(ARGV[3]), redis.call("PTTL", KEYS[2]))
redis.call("SET", KEYS[2], string.format("%.0f", fence), "PX", string.format("%.0f", keep))
return {1, fence}
