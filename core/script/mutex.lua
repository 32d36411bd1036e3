-- Put before every script of the mutex: what stands at a lock's key, its fence counter, and the queue before it.
--
-- KEYS 1 lock | 1 lock  2 fence counter | 1 lock  2 queue  3 places  4 fence counter
-- Without the queue's keys a script neither sees nor serves it: the lock is one of several, or its clients poll. The queue is a list of tokens, the longest waiting first. The hash of
-- places has for each: until when it lives, when it was last heard of and since when it waits, in µs of the server; when its
-- client last sent that, in the client's own µs; its ttl and its fence counter's ttl (0: without fencing) in ms; and the client.
local queue, places = KEYS[3] and KEYS[2], KEYS[3]
local counter = KEYS[4] or KEYS[2]

local HANDED_OVER_MOST = 3000 -- ms that a hand-over lives until it is confirmed: what a dead waiter costs
local PLACE_MOST = 3000000    -- µs that a place lives without being heard of
local QUEUE_KEEP = 60000      -- ms that the queue's keys outlive the last that was heard of it

local function text(number) return string.format("%.0f", number) end

local function look(key)
  local holder = redis.pcall("GET", key)
  if type(holder) == "table" then
    return nil, redis.call("TYPE", key).ok
  end
  return holder or nil, nil
end

-- Gives a key at least this many milliseconds to live, never fewer than it has.
local function lengthen(key, ms)
  if redis.call("PTTL", key) < tonumber(ms) then
    redis.call("PEXPIRE", key, ms)
  end
end

local function time()
  local now = redis.call("TIME")
  return now[1] * 1000000 + now[2]
end

-- Sets the counter to a new fencing token, which it returns: more than the last one, and no less than the proposed one.
local function fence(proposed, keep)
  local last = tonumber(redis.call("GET", counter) or "") or 0
  local token = math.max(last + 1, proposed)
  redis.call("SET", counter, text(token), "PX", text(math.max(tonumber(keep), redis.call("PTTL", counter))))
  return token
end

local PLACE = "^(%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (.*)$"

-- Removes a waiter. Returns whether it had a place.
local function leave(token)
  if not queue or redis.call("HDEL", places, token) == 0 then return false end
  redis.call("LREM", queue, 1, token)
  return true
end

-- Finds the first that lives, and its place. Of the dead before it at most 100 are removed: "" if there may be more.
local function first()
  for _ = 1, 100 do
    local token = redis.call("LINDEX", queue, 0)
    if not token then return nil end
    local now, place = time(), {string.match(redis.call("HGET", places, token) or "", PLACE)}
    local life = tonumber(place[1] or 0)
    if life > now + PLACE_MOST then -- the clock was set back
      life = now + PLACE_MOST
      place[1] = text(life)
      redis.call("HSET", places, token, table.concat(place, " "))
    end
    if life >= now then return token, place end
    redis.call("LPOP", queue)
    redis.call("HDEL", places, token)
  end
  return ""
end

local denied -- why a message could not be published

-- Publishes a message, which is the last thing that a script does. Returns how many have heard it.
local function tell(channel, message)
  local heard = redis.pcall("PUBLISH", channel, message)
  if type(heard) == "number" then return heard end
  denied = heard.err
  return 0
end

-- Makes the first that lives the holder of a lock that is free, and tells its client, unless it is the one that
-- asks. Returns that holder and its fencing token; nil if nobody waits, "" if that is not known yet. An error leaves the place
-- where it is: a script whose own work is done ignores it (pcall), and the next one that needs the lock meets it.
local function hand_over(asking)
  if not queue then return nil end
  local token, place = first()
  if not place then return token end
  local now, _, heard, _, sent, ttl, keep, client = time(), unpack(place)
  local number = keep == "0" and 0 or fence(now, keep)
  redis.call("SET", KEYS[1], token, "PX", text(math.min(tonumber(ttl), HANDED_OVER_MOST)))
  leave(token)
  if token ~= asking then
    tell("redlock:wake:" .. client,
      table.concat({"mutex", token, sent, text(math.max(now - tonumber(heard), 0)), text(number), KEYS[1]}, " "))
  end
  return token, number
end

-- Notes that a waiter lives, and gives it a place at the end if it has none.
local function wait(token, sent, life, ttl, keep, client)
  if redis.call("LLEN", queue) ~= redis.call("HLEN", places) then -- one of the two was evicted: all come again
    redis.call("DEL", queue, places)
  end
  local now = text(time())
  local since = select(3, string.match(redis.call("HGET", places, token) or "", PLACE))
  if not since then redis.call("RPUSH", queue, token) end
  redis.call("HSET", places, token, table.concat({text(now + life * 1000), now, since or now, sent, ttl, keep, client}, " "))
  redis.call("PEXPIRE", queue, QUEUE_KEEP)
  redis.call("PEXPIRE", places, QUEUE_KEEP)
end

-- Where a release is published that hands over to nobody, and what names its holder there and in refusals.
local released = "redlock:released:" .. KEYS[1]
local function name_of(holder) return string.sub(redis.sha1hex(holder), 1, 16) end

-- What one that waits, or may not, is told: for how long the lock is another's, -1 if nobody knows, and what its release will tell
-- those who wait: 1 if it hands over or publishes that, 2 if it is silent. With a queue that is for the first in it, 0 for all others.
-- Without a queue: how many clients listen, and a name for the holder, to see whether other nodes have the same one.
local function refusal(token, holder)
  local left, turn = math.max(redis.call("PTTL", KEYS[1]), -1), 0
  if not queue or first() == token then
    turn = string.sub(holder, 1, 4) == "rl1:" and 1 or 2
  end
  if queue then return {0, left, turn} end
  local listening = redis.pcall("PUBSUB", "NUMSUB", released)
  return {0, left, turn, listening[2] or 1, name_of(holder)}
end
