-- The reentrant lock: a hash at the lock's key. Its field "tok" is the hold's token, which is that of its first entry. Every entry has a field,
-- its token = the owner, so that it is added and removed once, however often that is asked. The field named like the owner has their number.
--
-- Redisson's RLock (and its spin and fair lock), 3.0 to 4.7, has nothing but that last field there, "<uuid>:<thread>". Its scripts look at no other
-- owner's field, and DEL the hash with the owner's last entry, or by force: so each side keeps the other out, and leaves what it has alone. Such a
-- hold is foreign here, even to an owner of the same name. The first of our queue polls for its end. Of the end of one of ours
-- Redisson's channel is told, handed over or not and by an undo too: its waiters sleep for as long as they saw it live, which may be hours.
-- A hash with Redisson's "mode" is its read-write lock, and one that fits neither is a user's own.
kind = "reentrant"

local OURS = "^rl[01]:"
local PASSED = "rl1:passed"     -- a field: how many hand-overs in a row have led to this hold
local UNFENCED = "rl1:unfenced" -- a field: the hold has no fencing token yet

local PASSED_MOST = 16 -- then Redisson's waiters, who have no place in the queue, come first once

-- Finds who holds the lock: the hold's token, or a foreign owner. Otherwise nil, and what else stands there.
local function look()
  local fields = redis.pcall("HMGET", KEYS[1], "tok", "mode")
  if fields.err then return nil, redis.call("TYPE", KEYS[1]).ok end
  local hold, mode = fields[1], fields[2]
  if mode == "read" or mode == "write" then return nil, "read-write lock of Redisson" end
  if hold then
    if string.find(hold, OURS) then return hold end
    return nil, "hash"
  end
  local size = redis.call("HLEN", KEYS[1])
  if size == 0 then return nil end
  if size == 1 then
    local owner, count = unpack(redis.call("HGETALL", KEYS[1]))
    if string.find(count, "^%d+$") then return owner end
  end
  return nil, "hash"
end

-- Tells whether this field is in a hold of ours: an owner's, or an entry's.
local function has(field)
  local fields = redis.call("HMGET", KEYS[1], "tok", field)
  return fields[1] and fields[2] and true
end

-- Makes a hold with one entry. What stood there is gone.
local function take(token, owner, ttl, fenced, passed)
  redis.call("HSET", KEYS[1], "tok", token, token, owner, owner, 1)
  if not fenced then redis.call("HSET", KEYS[1], UNFENCED, 1) end
  if passed then redis.call("HSET", KEYS[1], PASSED, passed) end
  redis.call("PEXPIRE", KEYS[1], ttl)
end

-- Adds an entry to its owner's hold, unless it is in already. Returns the hold's fencing token and the number of entries.
local function enter(token, owner, ttl, keep)
  if redis.call("HSETNX", KEYS[1], token, owner) == 1 then
    redis.call("HINCRBY", KEYS[1], owner, 1)
  end
  lengthen(KEYS[1], ttl)
  local number = 0
  if counter and keep ~= "0" then
    local unfenced = redis.call("HDEL", KEYS[1], UNFENCED) == 1 -- then the counter's is another hold's
    number = not unfenced and tonumber(redis.call("GET", counter) or "") or fence(time(), keep)
  end
  return number, tonumber(redis.call("HGET", KEYS[1], owner))
end

-- Why this token is not in: another's lock is 0, and what is gone is 2.
local function missing(holder, owner)
  return holder and not has(owner) and 0 or 2
end

-- Raises the fence counter to a hold's fencing token. Returns what it is then.
local function raise(number, keep)
  redis.call("HDEL", KEYS[1], UNFENCED)
  local most = math.max(tonumber(redis.call("GET", counter) or "") or 0, tonumber(number))
  redis.call("SET", counter, text(most), "PX", text(math.max(tonumber(keep), redis.call("PTTL", counter))))
  return most
end

local passed = 0 -- how many hand-overs in a row have led to the hold that was ended here

-- Tells Redisson's waiters that a hold has ended. Returns how many clients have heard it. On a cluster they listen to the shard.
local function announce()
  local name = KEYS[1]
  if not string.find(name, "{", 1, true) then name = "{" .. name .. "}" end
  local channel = "redisson_lock__channel:" .. name
  local heard, sharded = tell(channel, "0"), redis.pcall("SPUBLISH", channel, "0")
  return heard + (type(sharded) == "number" and sharded or 0)
end

local function finish()
  passed = tonumber(redis.call("HGET", KEYS[1], PASSED) or "") or 0
  redis.call("DEL", KEYS[1])
end

-- Removes an entry, and with the last one the hold. Returns how many entries are left; nil if it is not in.
local function leave_hold(token)
  local owner = redis.call("HGET", KEYS[1], token)
  if not owner then return nil end
  local count = tonumber(redis.call("HGET", KEYS[1], owner) or "") or 1
  if count > 1 then
    redis.call("HDEL", KEYS[1], token)
    return redis.call("HINCRBY", KEYS[1], owner, -1)
  end
  finish()
  return 0
end

-- What a place tells of an owner, whose name may be anything.
local function wanted(owner)
  return "|" .. string.gsub(owner, "[%s%%]", function(c) return string.format("%%%02X", string.byte(c)) end)
end

function grant(token, place, now, ms)
  local keep, escaped = place[6], string.sub(place[7], 2)
  local owner = string.gsub(escaped, "%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  local number = keep == "0" and 0 or fence(now, keep)
  take(token, owner, text(ms), keep ~= "0", passed + 1)
  return number
end

-- Hands over a lock that is free, unless it is Redisson's turn, which is told if a hold has ended here. Returns the new holder, if any.
local function pass_on(ended)
  local heard = ended and announce() or 0
  if heard > 0 and passed >= PASSED_MOST then return nil end
  local ok, next = pcall(hand_over)
  return ok and next or nil
end
