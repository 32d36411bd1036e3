-- Put behind queue.lua for the kinds that several may hold. At the lock's key is a sorted set with a member for each grant,
-- letter|what its kind wants to know|token, and as its score until when the grant lives, in ms of the server. The key lives as
-- long as any of them. Every grant has a token of its own, so that to add or remove it a second time does nothing: a script
-- that comes again counts once.
local now = math.floor(time() / 1000)

-- What a kind gives beside what queue.lua asks for.
local parse -- (member, score) a table of what they say: member, token, ends, and more

local OF = {r = "rwlock", w = "rwlock", i = "rwlock", s = "semaphore"} -- what kind a member is of, by its letter

-- Removes the grants whose time is over. Returns what stands at the key, if it is another kind: a type, or a kind that is a sorted set as well.
local function look()
  local soonest = redis.pcall("ZRANGE", KEYS[1], 0, 0, "WITHSCORES")
  if soonest.err then return redis.call("TYPE", KEYS[1]).ok end
  if not soonest[1] then return nil end
  local latest = redis.call("ZRANGE", KEYS[1], -1, -1)
  for _, member in ipairs({soonest[1], latest[1]}) do -- before anything is removed that may be another's
    local stands = OF[string.match(member, "^(%l)|[^|]*|")] or "zset"
    if stands ~= kind then return stands end
  end
  if tonumber(soonest[2]) <= now then
    redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", text(now))
  end
end

-- All grants, those that end first before the others.
local function grants()
  local list, found = {}, redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")
  for i = 1, #found, 2 do
    list[#list + 1] = parse(found[i], tonumber(found[i + 1]))
  end
  return list
end

-- Adds a grant, or lets it live for so many ms at least.
local function hold(member, ms)
  redis.call("ZADD", KEYS[1], "GT", text(now + ms), member)
  lengthen(KEYS[1], ms)
end

-- Lets a grant that is there live for so many ms at least. Returns whether it is there.
local function extend(member, ms)
  if not redis.call("ZSCORE", KEYS[1], member) then return false end
  redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", text(now)) -- removes nothing: a server without memory takes a ZADD behind another write only
  hold(member, ms)
  return true
end

-- Removes the grants and the places of this client's earlier attempts whose outcome it does not know: their tokens are in ARGV from
-- here on. Returns those grants.
local function forget(from)
  local removed, unresolved = {}, {}
  for i = from, #ARGV do
    unresolved[ARGV[i]] = true
    leave(ARGV[i])
  end
  for _, held in ipairs(ARGV[from] and grants() or {}) do
    if unresolved[held.token] then
      redis.call("ZREM", KEYS[1], held.member)
      removed[#removed + 1] = held
    end
  end
  return removed
end

local served = 0 -- places that were granted

-- Hands over for as long as the first that lives is admitted. Returns what the one that asks has got: a fencing token, and a slot if there are any.
local function serve(asking)
  local number, slot
  while true do
    local token, itsNumber, itsSlot = hand_over(asking)
    if not token or token == "" then return number, slot end
    served = served + 1
    if token == asking then number, slot = itsNumber, itsSlot end
  end
end

-- Removes the grants with this digest, and hands over. Returns the reply of a force.
local function force(digest)
  local removed, others = false, false
  for _, held in ipairs(grants()) do
    if redis.sha1hex(string.match(held.token, SECRET) or held.token) == digest then
      redis.call("ZREM", KEYS[1], held.member)
      removed = true
    end
    others = others or held.token ~= ""
  end
  pcall(serve)
  if removed and served == 0 then tell(RELEASED .. KEYS[1], kind .. " *") end
  return {removed and 1 or others and 0 or 2}
end
