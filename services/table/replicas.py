"""The processes of the table service: each leaves a heartbeat in Redis, and ends in order when it is told to there.

A process cannot be reached by its address (calls come through a balancer), but all of them share the store. All keys
have one hash tag; there are few processes and each beats once a second.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
from collections.abc import Callable
from typing import Any, Final

import msgspec
from redis.asyncio import Redis

from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.errors import Fault
from services.table.store import StoreUnavailableError
from services.table.subscriptions import reached

BEAT_SECONDS: Final = 1.0
# A process that was not heard of for so long is gone, and is listed no more.
GONE_MS: Final = 10_000
LISTED_MAX: Final = 1_000
HOST_CHARACTERS_MAX: Final = 40

# KEYS: beats, facts, drains. ARGV: id, facts, milliseconds after which a process is gone. Answer: what it was told.
_BEAT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]), 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[1], gone)
  redis.call('HDEL', KEYS[2], gone)
  redis.call('HDEL', KEYS[3], gone)
end
return redis.call('HGET', KEYS[3], ARGV[1]) or ''
"""

# KEYS: beats, facts, drains. ARGV: id, what it is told, milliseconds after which a process is gone. Answer: 1 if told.
_TELL: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local beat = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not beat or tonumber(beat) < now - tonumber(ARGV[3]) then
  return 0
end
redis.call('HSETNX', KEYS[3], ARGV[1], ARGV[2])
return 1
"""


class Facts(msgspec.Struct, frozen=True):
    """What a process says of itself with each beat."""

    started_ms: int
    tables: int


class Drain(msgspec.Struct, frozen=True):
    """What a process was told: to end, by whom, why."""

    by: str = ""
    reason: str = ""


class Replica(msgspec.Struct, frozen=True):
    """A process as the others know it; `drain.by` is empty unless it was told to end."""

    id: str
    beat_ms: int
    facts: Facts
    drain: Drain


class Replicas:
    """The processes on one store, and this one among them. `told_to_end` is set when somebody drains it."""

    def __init__(self, redis: Redis, clock: Clock, tables: Callable[[], int], prefix: str = "fd") -> None:
        self.id = _new_id()
        self.told_to_end = asyncio.Event()
        self._redis = redis
        self._clock = clock
        self._tables = tables
        self._started_ms = clock.now_ms()
        self._keys = [f"{prefix}:{{replicas}}:{part}" for part in ("beats", "facts", "drains")]
        self._beat = redis.register_script(_BEAT)
        self._tell = redis.register_script(_TELL)
        self._log = telemetry.logger("table.replicas")

    async def run(self) -> None:
        """Beats until it is cancelled; while the store is away nobody hears of this process, nor it of anybody."""
        while True:
            try:
                await self.beat()
            except StoreUnavailableError as error:
                self._log.warning("no heartbeat", error=type(error).__name__)
            await self._clock.sleep(BEAT_SECONDS)

    async def beat(self) -> None:
        """Tells of this process, and hears what it is told."""
        facts = msgspec.json.encode(Facts(self._started_ms, self._tables()))
        told = await reached(self._beat(keys=self._keys, args=[self.id, facts, GONE_MS]))
        if told and not self.told_to_end.is_set():
            drain = msgspec.json.decode(told, type=Drain)
            self._log.info("drained", replica=self.id, by=drain.by, reason=drain.reason)
            self.told_to_end.set()

    async def leave(self) -> None:
        """Takes this process off the list. Where the store is away, its beat runs out instead."""
        beats, facts, drains = self._keys
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.zrem(beats, self.id)
            pipe.hdel(facts, self.id)
            pipe.hdel(drains, self.id)
            try:
                await reached(pipe.execute())
            except StoreUnavailableError as error:
                self._log.warning("left without a word", error=type(error).__name__)

    async def alive(self) -> list[Replica]:
        """The processes heard of lately, by id, at most `LISTED_MAX`."""
        beats, facts, drains = self._keys
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.zrange(beats, 0, LISTED_MAX - 1, withscores=True)
            pipe.hgetall(facts)
            pipe.hgetall(drains)
            (seconds, micros), heard, facts_by_id, drains_by_id = await reached(pipe.execute())
        gone_ms = seconds * 1000 + micros // 1000 - GONE_MS
        return sorted(
            (
                Replica(name.decode(), int(beat), _read(facts_by_id[name], Facts), _read(drains_by_id.get(name), Drain))
                for name, beat in heard
                if beat >= gone_ms and name in facts_by_id
            ),
            key=lambda each: each.id,
        )

    async def drain(self, replica_id: str, by: str, reason: str) -> Replica:
        """Tells a process to end. Raises `Fault` REPLICA_NOT_FOUND for one that was not heard of lately."""
        told = msgspec.json.encode(Drain(by, reason))
        if await reached(self._tell(keys=self._keys, args=[replica_id, told, GONE_MS])):
            for each in await self.alive():
                if each.id == replica_id:
                    return each
        raise Fault("REPLICA_NOT_FOUND", f"there is no process {replica_id}", replica=replica_id)


def _read(packed: bytes | None, kind: Any) -> Any:
    return msgspec.json.decode(packed, type=kind) if packed else kind()


def _new_id() -> str:
    host = re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower())[:HOST_CHARACTERS_MAX]
    return f"{host}-{secrets.token_hex(4)}"
