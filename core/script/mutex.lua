-- Put before every script of the mutex: what stands at a lock's key.
-- Returns the holder's token or nil, and the type's name if the key is no string.
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
