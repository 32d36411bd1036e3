-- The semaphore: of the slots 0, 1, ... as many as it has permits are to be had. Members are s|slot|token. The permits are not
-- kept: each call says how many there are, so that more of them act at once, and fewer let those who hold a slot finish. At the fence
-- counter's key is a hash with a counter for each slot.
kind = "semaphore"

local function member(slot, token) return "s|" .. slot .. "|" .. token end

function parse(name, ends)
  local slot, token = string.match(name, "^s|(%d*)|(.*)$")
  return {member = name, slot = slot, token = token, ends = ends}
end

-- Who holds which slot: a table of members by slots.
local function slots()
  local taken = {}
  for _, name in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
    taken[string.match(name, "^s|(%d*)|")] = name
  end
  return taken
end

-- The slot for a new holder, if there is one: the lowest that is free, or the proposed one.
local function vacancy(permits, proposed)
  permits = tonumber(permits)
  if redis.call("ZCARD", KEYS[1]) >= permits then return nil end
  local taken = slots()
  if proposed ~= "" then
    return tonumber(proposed) < permits and not taken[proposed] and proposed or nil
  end
  local slot = 0
  while taken[text(slot)] do slot = slot + 1 end -- one below permits is free, since there are fewer holders
  return text(slot)
end

-- The slot of a token; nil if it has none. "" stands for a slot that its client does not know.
local function slot_of(token, slot)
  if slot ~= "" then return redis.call("ZSCORE", KEYS[1], member(slot, token)) and slot or nil end
  local part = "|" .. token
  for _, name in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
    if string.find(name, part, 1, true) and parse(name).token == token then return parse(name).slot end
  end
end

-- What a script says that finds no grant for its token: 0 if another has the slot, else 2.
local function missing(slot) return slots()[slot] and 0 or 2 end

local function last_of(slot) return tonumber(redis.call("HGET", counter, slot) or "") end

-- Brings the counter of a slot to this fencing token at least. Returns what it is.
local function raise(slot, number, keep)
  local last = last_of(slot) or 0
  if last < number then
    last = number
    redis.call("HSET", counter, slot, text(number))
  end
  lengthen(counter, keep)
  return last
end

-- Makes a token the holder of a slot. Returns its fencing token.
local function add(slot, token, ms, proposed, keep)
  local number = 0
  if counter and keep ~= "0" then
    number = raise(slot, math.max((last_of(slot) or 0) + 1, proposed), keep)
  end
  hold(member(slot, token), ms)
  return number
end

local vacant -- the slot for the place that was admitted last

function admits(place)
  vacant = vacancy(string.sub(place[7], 2), "")
  return vacant
end

function grant(token, place, at, ms) return add(vacant, token, ms, at, place[6]), vacant end

-- The reply to one that waits, or may not: of the grants one of which has to end, the one that does so first; or the one that has the proposed slot.
-- Without a queue also which slots are free here, the lowest hundred of them.
local function refuse(token, permits, proposed)
  local count, taken = redis.call("ZCARD", KEYS[1]), not queue and slots() or {}
  permits = tonumber(permits)
  local has_to_end = math.max(count - permits, 0)
  if taken[proposed] then has_to_end = redis.call("ZRANK", KEYS[1], taken[proposed]) end
  local found = redis.call("ZRANGE", KEYS[1], has_to_end, has_to_end, "WITHSCORES")
  local reply = refusal(token, found[1] and parse(found[1]).token or "", nil, found[1] and found[2] - now or -1)
  if queue then return reply end
  local free = {}
  for slot = 0, count < permits and permits - 1 or -1 do
    if #free == 100 then break end
    if not taken[text(slot)] then free[#free + 1] = text(slot) end
  end
  reply[6] = table.concat(free, ",")
  return reply
end
