"""The Lua functions that make the store's writes atomic. All keys of one table share a hash slot."""

from __future__ import annotations

from typing import Final

# KEYS: state, log. ARGV: expected epoch, version, commit; following epoch, version, commit; blob; sequence;
# deadline (-1 keep, -2 clear, else milliseconds from now); first sequence; batch ('' for none); channel; lobby row.
# Answer: {1, now, deadline}, or {0} if the table has moved on.
COMMIT: Final = """
local at = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'commit', 'deadline', 'at')
local epoch, version, commit = at[1] or '0', at[2] or '0', at[3] or ''
if commit == ARGV[6] then
  return {1, at[5], at[4]}
end
local same = epoch == ARGV[1] and version == ARGV[2] and commit == ARGV[3]
if not same and tonumber(epoch) >= tonumber(ARGV[4]) then
  return {0}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = string.format('%.0f', now)
local deadline = at[4] or '0'
if ARGV[9] == '-2' then
  deadline = '0'
elseif ARGV[9] ~= '-1' then
  deadline = string.format('%.0f', now + tonumber(ARGV[9]))
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[4], 'version', ARGV[5], 'commit', ARGV[6], 'blob', ARGV[7],
  'sequence', ARGV[8], 'deadline', deadline, 'at', stamp, 'lobby', ARGV[13])
if ARGV[11] ~= '' then
  redis.call('XADD', KEYS[2], ARGV[4] .. '-' .. ARGV[10], 'a', stamp, 'b', ARGV[11])
  redis.call('PUBLISH', ARGV[12], stamp .. ':' .. ARGV[11])
end
return {1, stamp, deadline}
"""

# KEYS: index shard. ARGV: limit, hold. Answer: now, then table ids that were due, each put off by `hold`.
CLAIM_DUE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
local held = string.format('%.0f', now + tonumber(ARGV[2]))
for _, member in ipairs(due) do
  redis.call('ZADD', KEYS[1], held, member)
end
table.insert(due, 1, held)
return due
"""

# KEYS: index shard. ARGV: table id, due time. Never moves an entry to a later time; an entry that is early enough is
# still touched, so that a sweeper that has just claimed it cannot take it out without looking again.
ENTER_DUE: Final = """
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
local due = ARGV[2]
if score and tonumber(score) <= tonumber(due) then
  due = string.format('%.0f', tonumber(score) - 1)
end
redis.call('ZADD', KEYS[1], due, ARGV[1])
return 1
"""

# KEYS: index shard. ARGV: table id, due time claimed, next time (0: out). Nothing if another time was entered since.
SETTLE_DUE: Final = """
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
  return 0
end
if ARGV[3] == '0' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
"""

# KEYS: heartbeat, outage. ARGV: longest gap, milliseconds. Answer: start and end of the last longer one, or zeros.
HEARTBEAT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], string.format('%.0f', now))
if before and now - tonumber(before) > tonumber(ARGV[1]) then
  redis.call('HSET', KEYS[2], 'start', before, 'end', string.format('%.0f', now))
end
local outage = redis.call('HMGET', KEYS[2], 'start', 'end')
return {outage[1] or '0', outage[2] or '0'}
"""

# KEYS: places of unwritten hands, log. ARGV: `epoch:hand` that is written, how many entries to keep, most to drop.
# Takes the hand's place out and drops the oldest entries that no other unwritten hand needs. Only what is dropped is
# read, so that a long log costs no more than a short one.
TRIM: Final = """
redis.call('HDEL', KEYS[1], ARGV[1])
local drop = math.min(redis.call('XLEN', KEYS[2]) - tonumber(ARGV[2]), tonumber(ARGV[3]))
if drop <= 0 then
  return 0
end
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', drop + 1)
local start = oldest[#oldest][1]
local epoch, first = string.match(start, '(%d+)-(%d+)')
epoch, first = tonumber(epoch), tonumber(first)
for _, place in ipairs(redis.call('HVALS', KEYS[1])) do
  local at, sequence = string.match(place, '(%d+):(%d+)')
  if tonumber(at) < epoch or (tonumber(at) == epoch and tonumber(sequence) < first) then
    epoch, first = tonumber(at), tonumber(sequence)
    -- An entry's id is that of its first event, and the hand may begin in the middle of one.
    local before = redis.call('XREVRANGE', KEYS[2], at .. '-' .. sequence, at .. '-0', 'COUNT', 1)
    start = before[1] and before[1][1] or at .. '-' .. sequence
  end
end
return redis.call('XTRIM', KEYS[2], 'MINID', start)
"""
