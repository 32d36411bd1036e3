-- The lock that many read or one writes. Members are r|owner|token, w|owner|token, and i||, which is no grant: until it ends nobody begins to
-- read, since somebody who waits without a queue wants to write. An owner that writes may do so again, and read as well; one
-- that only reads may read again. While anybody writes, all grants are its owner's.
kind = "rwlock"

local INTENT = "i||"

local function member(mode, owner, token) return mode .. "|" .. owner .. "|" .. token end

function parse(member, ends)
  local mode, owner, token = string.match(member, "^(.)|([^|]*)|(.*)$")
  return {member = member, mode = mode, owner = owner, token = token, ends = ends}
end

-- The grant that ends first (ZRANGE) or last (ZREVRANGE).
local function edge(command)
  local found = redis.call(command, KEYS[1], 0, 1, "WITHSCORES")
  for i = 1, #found, 2 do
    if found[i] ~= INTENT then return parse(found[i], tonumber(found[i + 1])) end
  end
end

-- The owner that writes, if any does; and of the grants that keep others out, the one that ends last: nil if there is none. Readers
-- of several owners are not looked at one by one, for there may be thousands.
local function holders()
  local last = edge("ZREVRANGE")
  if not last then return nil, nil end
  local soonest = edge("ZRANGE")
  if soonest.owner ~= last.owner then return nil, last end
  local writes = last.mode == "w" and last or nil
  if soonest.member ~= last.member then
    for _, held in ipairs(grants()) do
      if held.mode == "w" then writes = held end
    end
  end
  return writes and writes.owner, writes or last
end

-- Whether an owner holds it in any mode.
local function owns(owner)
  local part = "|" .. owner .. "|"
  for _, name in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
    if string.find(name, part, 2, true) == 2 then return true end
  end
  return false
end

-- Until when others rule out that an owner has it in this mode; nil if they do not.
local function barred(mode, owner)
  local ends
  for _, held in ipairs(grants()) do
    if held.owner ~= owner and (held.mode == "w" or held.mode == "r" and mode == "w") then ends = held.ends end
  end
  return ends
end

-- Whether an owner may have it in this mode, by what holders() says.
local function free(mode, owner, writer, last)
  return writer == owner or not writer and (mode == "r" or not last)
end

-- The fencing token of a grant: a new one, but for who writes already.
local function fencing(writes, proposed, keep)
  if not counter or keep == "0" then return 0 end
  return writes and tonumber(redis.call("GET", counter) or "") or fence(proposed, keep)
end

-- Makes a token a holder, one whose owner writes already or not. Returns its fencing token.
local function add(mode, owner, writes, token, ms, proposed, keep)
  local number = fencing(writes, proposed, keep)
  hold(member(mode, owner, token), ms)
  if mode == "w" and not queue then redis.call("ZREM", KEYS[1], INTENT) end
  return number
end

local WANTED = "^|(.)|(.*)$" -- mode and owner in a place

local admitted -- of the place that was admitted last, whether its owner writes already

function admits(place)
  local mode, owner = string.match(place[7], WANTED)
  local writer, last = holders()
  admitted = writer == owner
  return free(mode, owner, writer, last)
end

function grant(token, place, at, ms)
  local mode, owner = string.match(place[7], WANTED)
  return add(mode, owner, admitted, token, ms, at, place[6])
end

-- The reply to one that waits, or may not. On several nodes the holder's name is the owner that writes, and one for all readers together.
local function refuse(token, mode)
  local writer, last = holders()
  local intent = mode == "r" and not writer and not queue and redis.call("ZSCORE", KEYS[1], INTENT)
  if intent then return refusal(token, "rl1:", INTENT, intent - now) end
  if not last then return refusal(token, "", "", -1) end
  return refusal(token, last.token, writer or "r", last.ends - now)
end

-- Brings the fence counter to this fencing token at least. Returns what it is.
local function raise(number, keep)
  local last = tonumber(redis.call("GET", counter) or "") or 0
  if last < number then
    last = number
    redis.call("SET", counter, text(number), "PX", text(math.max(tonumber(keep), redis.call("PTTL", counter))))
  else
    lengthen(counter, keep)
  end
  return last
end
