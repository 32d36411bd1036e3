-- The mutex: a string at the lock's key, the token of its holder.
kind = "mutex"

local function look(key)
  local holder = redis.pcall("GET", key)
  if type(holder) == "table" then
    return nil, redis.call("TYPE", key).ok
  end
  return holder or nil, nil
end

function grant(token, place, now, ms)
  local keep = place[6]
  local number = keep == "0" and 0 or fence(now, keep)
  redis.call("SET", KEYS[1], token, "PX", text(ms))
  return number
end
