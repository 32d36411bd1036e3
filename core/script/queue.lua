-- Put before every script: a lock's fence counter, and the queue before it. The kind of the lock comes next.
--
-- KEYS 1 lock | 1 lock  2 fence counter | 1 lock  2 queue  3 places  4 fence counter
-- Without the queue's keys a script neither sees nor serves it: the lock is one of several, or its clients poll. The queue is a list of tokens, the longest waiting first. The hash of
-- places has for each: until when it lives, when it was last heard of and since when it waits, in µs of the server; when its
-- client last sent that, in the client's own µs; its ttl and its fence counter's ttl (0: without fencing) in ms, and after that,
-- each behind a "|", what else its kind wants to know; and the client.
local queue, places = KEYS[3] and KEYS[2], KEYS[3]
local counter = KEYS[4] or KEYS[2]

-- What a kind gives. A place is what PLACE finds in the hash.
local kind   -- its name in messages
local admits -- (place) whether the lock may be granted to that place now; nil if who hands over knows that
local grant  -- (token, place, now in µs, ms) makes it a holder for so long, and returns its fencing token, and its slot if there are any

local HANDED_OVER_MOST = 3000 -- ms that a hand-over lives until it is confirmed: what a dead waiter costs
local PLACE_MOST = 3000000    -- µs that a place lives without being heard of
local QUEUE_KEEP = 60000      -- ms that the queue's keys outlive the last that was heard of it

-- Before a lock's key: the channel where a release is published that hands over to nobody, by the kind and what is free: the holder that
-- it was, the slot, or * for whatever.
local RELEASED = "redlock:released:"

-- The random part of a token. Its digest is what the holder is forced by.
local SECRET = "^rl[01]:(......................):"

-- What names a holder in refusals and messages without revealing it.
local function name_of(holder) return string.sub(redis.sha1hex(holder), 1, 16) end

local function text(number) return string.format("%.0f", number) end

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

-- The least that a fencing token is to be: the server's time, or what a client proposes, which counts as far as it is near that.
local function proposal(client)
  local now = time()
  if client == "" then return now end
  local most = 60 * 1000000
  return math.min(math.max(tonumber(client), now - most), now + most)
end

-- Sets the counter to a new fencing token, which it returns: more than the last one, and no less than the proposed one.
local function fence(proposed, keep)
  local last = tonumber(redis.call("GET", counter) or "") or 0
  local token = math.max(last + 1, proposed)
  redis.call("SET", counter, text(token), "PX", text(math.max(tonumber(keep), redis.call("PTTL", counter))))
  return token
end

local PLACE = "^(%d+) (%d+) (%d+) (%S+) (%d+) (%d+)(%S*) (.*)$"
local SINCE = "^%d+ %d+ (%d+) "

-- Removes a waiter. Returns whether it had a place.
local function leave(token)
  if not queue or redis.call("HDEL", places, token) == 0 then return false end
  redis.call("LREM", queue, 1, token)
  return true
end

-- Finds the first that lives, and what the hash of places has for it. Of the dead before it at most 100 are removed: "" if there may be more.
local function first()
  for _ = 1, 100 do
    local token = redis.call("LINDEX", queue, 0)
    if not token then return nil end
    local now, record = time(), redis.call("HGET", places, token) or ""
    local life = tonumber(string.match(record, "^%d+") or 0)
    if life > now + PLACE_MOST then -- the clock was set back
      life = now + PLACE_MOST
      redis.call("HSET", places, token, text(life) .. string.match(record, " .*"))
    end
    if life >= now then return token, record end
    redis.call("LPOP", queue)
    redis.call("HDEL", places, token)
  end
  return ""
end

local denied -- why a message could not be published

-- Publishes a message, which is the last thing that a script does for whom it is about. Returns how many have heard it.
local function tell(channel, message)
  local heard = redis.pcall("PUBLISH", channel, message)
  if type(heard) == "number" then return heard end
  denied = heard.err
  return 0
end

-- Makes the first that lives a holder, if the lock admits it, and tells its client, unless it is the one that asks. Returns that
-- holder, its fencing token and its slot; nil if nobody is to have it, "" if that is not known yet. An error leaves the
-- place where it is: a script whose own work is done ignores it (pcall), and the next one that needs the lock meets it.
local function hand_over(asking)
  if not queue then return nil end
  local token, record = first()
  if not record then return token end
  local place = {string.match(record, PLACE)}
  if admits and not admits(place) then return nil end
  local now, _, heard, _, sent, ttl, _, _, client = time(), unpack(place)
  local number, slot = grant(token, place, now, math.min(tonumber(ttl), HANDED_OVER_MOST))
  leave(token)
  if token ~= asking then
    local granted = slot and text(number) .. " " .. slot or text(number)
    tell("redlock:wake:" .. client,
      table.concat({kind, token, sent, text(math.max(now - tonumber(heard), 0)), granted, KEYS[1]}, " "))
  end
  return token, number, slot
end

-- Notes that a waiter lives, and gives it a place at the end if it has none.
local function wait(token, sent, life, ttl, keep, client, wanted)
  if redis.call("LLEN", queue) ~= redis.call("HLEN", places) then -- one of the two was evicted: all come again
    redis.call("DEL", queue, places)
  end
  local now = text(time())
  local since = string.match(redis.call("HGET", places, token) or "", SINCE)
  if not since then redis.call("RPUSH", queue, token) end
  local record = {text(now + life * 1000), now, since or now, sent, ttl, wanted and keep .. wanted or keep, client}
  redis.call("HSET", places, token, table.concat(record, " "))
  redis.call("PEXPIRE", queue, QUEUE_KEEP)
  redis.call("PEXPIRE", places, QUEUE_KEEP)
end

-- How many wait, and for how many ms the first of them has.
local function waiting()
  local length, waited = redis.call("LLEN", queue), 0
  if length > 0 then
    local place = redis.call("HGET", places, redis.call("LINDEX", queue, 0)) or ""
    local since = string.match(place, SINCE)
    if since then waited = math.max(math.floor((time() - since) / 1000), 0) end
  end
  return length, waited
end

-- What one that waits, or may not, is told: for how long the lock is another's, -1 if nobody knows, and what its release will tell
-- those who wait: 1 if it hands over or publishes that, 2 if it is silent. With a queue that is for the first in it, 0 for all others.
-- Without a queue: how many clients listen, and a name for the holder, to see whether other nodes have the same one.
local function refusal(token, holder, name, left)
  local turn = 0
  left = left or math.max(redis.call("PTTL", KEYS[1]), -1)
  if not queue or first() == token then
    turn = string.sub(holder, 1, 4) == "rl1:" and 1 or 2
  end
  if queue then return {0, left, turn} end
  local listening = redis.pcall("PUBSUB", "NUMSUB", RELEASED .. KEYS[1])
  return {0, left, turn, listening[2] or 1, name_of(name or holder)}
end
