"""The `TableStore` on Redis: a hash for the state, a stream for the log, a channel for the fan-out.

Keys of one table share the hash tag `{table}`. A stream's entry is one commit, its id `epoch-first sequence`, so that
a sequence can be found without an index. The indexes of due tables and unwritten hands are sharded by table.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.table import bus, metrics, scripts
from services.table.bus import Batch
from services.table.lane import Lane, Word
from services.table.store import Commit, Committed, Due, Outage, Stored, StoreUnavailableError, Unwritten, Version
from services.table.subscriptions import Subscriptions, reached

SHARDS: Final = 8
READ_PAGE: Final = 200
# A due time this close may be claimed by a sweeper while a commit is on its way.
CLAIM_MARGIN_MS: Final = 2_000
ENTERED_MAX: Final = 20_000
# Most entries dropped from a log at once; the next hand's confirmation drops on.
TRIM_MAX: Final = 1_000

_LOAD_SECONDS: Final = metrics.STORE_SECONDS.labels("load")
_COMMIT_SECONDS: Final = metrics.STORE_SECONDS.labels("commit")


class RedisStore:
    """Tables in one Redis (or Redis Cluster: every script touches one slot only)."""

    def __init__(self, redis: Redis, prefix: str = "fd") -> None:
        self._redis = redis
        self._lane = Lane(redis)
        self._prefix = prefix
        self._commit = redis.register_script(scripts.COMMIT)
        self._claim_due = redis.register_script(scripts.CLAIM_DUE)
        self._enter_due = redis.register_script(scripts.ENTER_DUE)
        self._settle_due = redis.register_script(scripts.SETTLE_DUE)
        self._heartbeat = redis.register_script(scripts.HEARTBEAT)
        self._trim = redis.register_script(scripts.TRIM)
        # Due times this process has entered and not seen claimed since: an earlier or equal entry needs no second one.
        self._entered: dict[str, int] = {}
        self._offset_ms = 0
        self._subscriptions = Subscriptions(redis)

    async def load(self, table_id: str) -> Stored | None:
        """See `TableStore`."""
        fields = ("epoch", "version", "commit", "blob", "sequence", "deadline")
        with _LOAD_SECONDS.time():
            values, now = await self._calls(("HMGET", self._key(table_id, "state"), *fields), ("TIME",))
        if values[0] is None:
            return None
        at = Version(int(values[0]), int(values[1]), values[2].decode())
        return Stored(at, values[3], int(values[4]), int(values[5]), _milliseconds(now))

    async def commit(self, table_id: str, commit: Commit) -> Committed | None:
        """See `TableStore`."""
        if commit.deadline >= 0:
            # An index entry that comes too early costs one look; one that is missing loses the clock. Hence before.
            now_ms = self._estimate_ms() or await self.now_ms()
            await self.note_due(table_id, now_ms + commit.deadline)
        batch = bus.dump(commit.batch) if commit.batch is not None else b""
        first = commit.batch.first if commit.batch is not None else 0
        expected, following = commit.expected, commit.following
        args: list[bytes | str | int | float] = [
            expected.epoch,
            expected.version,
            expected.commit,
            following.epoch,
            following.version,
            following.commit,
            commit.blob,
            commit.sequence,
            commit.deadline,
            first,
            batch,
            self._key(table_id, "events"),
            commit.lobby,
        ]
        keys = [self._key(table_id, "state"), self._key(table_id, "log")]
        with _COMMIT_SECONDS.time():
            answer = await reached(self._lane.run(self._commit, keys, args))
        if not answer[0]:
            return None
        self._saw_time(int(answer[1]))
        return Committed(int(answer[1]), int(answer[2]))

    async def read_log(self, table_id: str, epoch: int, after: int, limit: int) -> list[Batch]:
        """See `TableStore`."""
        key = self._key(table_id, "log")
        start = await self._start_of(key, epoch, after + 1)
        batches = await self._read(key, start, f"{epoch}-{1 << 62}", limit)
        return [batch for batch in batches if batch.last > after]

    async def read_from(self, table_id: str, epoch: int, first: int, limit: int) -> list[Batch]:
        """See `TableStore`."""
        key = self._key(table_id, "log")
        return await self._read(key, await self._start_of(key, epoch, first), "+", limit)

    async def _start_of(self, key: str, epoch: int, sequence: int) -> str:
        """Id of the batch that holds this event (it is that of the batch's first one), or where it would stand."""
        before = await reached(self._redis.xrevrange(key, max=f"{epoch}-{sequence}", min=f"{epoch}-0", count=1))
        return before[0][0].decode() if before else f"{epoch}-{sequence}"

    async def _read(self, key: str, start: str, end: str, limit: int) -> list[Batch]:
        batches: list[Batch] = []
        events = 0
        while events < limit:
            page = await reached(self._redis.xrange(key, min=start, max=end, count=READ_PAGE))
            for entry_id, fields in page:
                batch = bus.load(fields[b"b"], int(fields[b"a"]))
                batches.append(batch)
                events += len(batch.entries)
                start = "(" + entry_id.decode()
                if events >= limit:
                    break
            if len(page) < READ_PAGE:
                break
        return batches

    @asynccontextmanager
    async def subscribe(self, table_id: str) -> AsyncIterator[AsyncIterator[Batch | None]]:
        """See `TableStore`."""
        channel = self._key(table_id, "events").encode()
        queue = await self._subscriptions.add(channel)
        try:
            yield self._subscriptions.batches(queue)
        finally:
            await self._subscriptions.remove(channel, queue)

    async def claim_due(self, limit: int, hold_ms: int) -> list[Due]:
        """See `TableStore`."""

        claim = self._claim_due
        keys = [self._due_key(shard) for shard in range(SHARDS)]
        shards = await reached(
            self._lane.calls(*(("EVALSHA", claim.sha, 1, key, limit, hold_ms) for key in keys)),
        )
        for shard, answer in enumerate(shards):
            if isinstance(answer, RedisError):
                # A server that was restarted has forgotten the script, and gets it again; any other trouble is told.
                shards[shard] = await reached(self._lane.run(claim, [keys[shard]], [limit, hold_ms]))
        claimed = []
        for held, *members in shards:
            claimed += [Due(member.decode(), int(held)) for member in members]
        for due in claimed:
            self._entered.pop(due.table_id, None)
        return claimed

    async def enter_due(self, table_id: str, due_ms: int) -> None:
        """See `TableStore`."""
        key = self._due_key(_shard(table_id))
        await reached(self._lane.run(self._enter_due, [key], [table_id, due_ms]))
        if len(self._entered) >= ENTERED_MAX:
            self._entered.clear()
        self._entered[table_id] = due_ms

    async def note_due(self, table_id: str, due_ms: int) -> None:
        """See `TableStore`."""
        now_ms = self._estimate_ms() or await self.now_ms()
        if now_ms + CLAIM_MARGIN_MS < self._entered.get(table_id, 0) <= due_ms:
            return
        await self.enter_due(table_id, due_ms)

    def _estimate_ms(self) -> int:
        """The store's time by this process's clock and the last answer seen; 0 before the first answer."""
        return self._offset_ms and time.monotonic_ns() // 1_000_000 + self._offset_ms

    def _saw_time(self, now_ms: int) -> None:
        self._offset_ms = now_ms - time.monotonic_ns() // 1_000_000

    async def settle_due(self, due: Due, hold_ms: int, next_ms: int) -> None:
        """See `TableStore`."""
        key = self._due_key(_shard(due.table_id))
        await reached(self._lane.run(self._settle_due, [key], [due.table_id, due.due_ms, next_ms]))

    async def mark_unwritten(self, hand: Unwritten) -> None:
        """See `TableStore`."""
        now_ms = self._estimate_ms() or await self.now_ms()
        member = f"{hand.table_id}|{hand.epoch}|{hand.hand}"
        first = f"{hand.first_epoch}:{hand.first}"
        # The place of its events first: a hand that is listed can then always be read.
        await self._calls(
            ("HSETNX", self._key(hand.table_id, "hands"), f"{hand.epoch}:{hand.hand}", first),
            ("ZADD", self._unwritten_key(_shard(hand.table_id)), "NX", now_ms, member),
        )

    async def confirm_written(self, table_id: str, epoch: int, hand: int, keep: int) -> None:
        """See `TableStore`."""
        member = f"{table_id}|{epoch}|{hand}"
        await self._calls(("ZREM", self._unwritten_key(_shard(table_id)), member))
        keys = [self._key(table_id, "hands"), self._key(table_id, "log")]
        await reached(self._lane.run(self._trim, keys, [f"{epoch}:{hand}", keep, TRIM_MAX]))

    async def find_unwritten(self, table_id: str, epoch: int, hand: int) -> Unwritten | None:
        """See `TableStore`."""
        (place,) = await self._calls(("HGET", self._key(table_id, "hands"), f"{epoch}:{hand}"))
        return Unwritten(table_id, epoch, hand, *_place(place)) if place else None

    async def list_unwritten(self, limit: int, older_than_ms: int) -> list[Unwritten]:
        """See `TableStore`."""
        before = await self.now_ms() - older_than_ms
        found: list[tuple[float, bytes]] = []
        for shard in range(SHARDS):
            members = await reached(
                self._redis.zrangebyscore(
                    self._unwritten_key(shard), "-inf", before, start=0, num=limit, withscores=True
                )
            )
            found += [(score, member) for member, score in members]
        hands = []
        for _, member in sorted(found)[:limit]:
            table_id, epoch, hand = member.decode().split("|")
            hands.append(Unwritten(table_id, int(epoch), int(hand)))
        return hands

    async def unwritten(self) -> tuple[int, int]:
        """See `TableStore`."""
        keys = [self._unwritten_key(shard) for shard in range(SHARDS)]
        counts = [("ZCARD", key) for key in keys]
        firsts = [("ZRANGE", key, 0, 0, "WITHSCORES") for key in keys]
        now, *answers = await self._calls(("TIME",), *counts, *firsts)
        now_ms = _milliseconds(now)
        oldest_ms = min([now_ms, *(int(float(first[1])) for first in answers[SHARDS:] if first)])
        return sum(answers[:SHARDS]), now_ms - oldest_ms

    async def load_lobby(self, table_ids: Sequence[str]) -> list[bytes]:
        """See `TableStore`."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for table_id in table_ids:
                pipe.hget(self._key(table_id, "state"), "lobby")
            rows = await reached(pipe.execute())
        return [row or b"" for row in rows]

    async def hint_lobby(self, table_id: str) -> None:
        """See `TableStore`."""
        now_ms = self._estimate_ms() or await self.now_ms()
        await self._calls(("ZADD", f"{self._prefix}:lobby", now_ms, table_id))

    async def changed_lobby(self, since_ms: int, limit: int) -> list[str]:
        """See `TableStore`."""
        members = await reached(
            self._redis.zrangebyscore(f"{self._prefix}:lobby", since_ms, "+inf", start=0, num=limit)
        )
        return [member.decode() for member in members]

    async def beat(self, gap_max_ms: int) -> Outage:
        """See `TableStore`."""
        keys = [f"{self._prefix}:{{sweep}}:heartbeat", f"{self._prefix}:{{sweep}}:outage"]
        start, end = await reached(self._lane.run(self._heartbeat, keys, [gap_max_ms]))
        return Outage(int(start), int(end))

    async def now_ms(self) -> int:
        """See `TableStore`."""
        (now,) = await self._calls(("TIME",))
        now_ms = _milliseconds(now)
        self._saw_time(now_ms)
        return now_ms

    def close(self) -> None:
        """Ends the connection for commands; the client that was given is its owner's to close."""
        self._lane.close()

    async def _calls(self, *commands: Sequence[Word]) -> list[Any]:
        """The answers to commands that are sent together. Raises `StoreUnavailableError`."""
        answers: list[Any] = await reached(self._lane.calls(*commands))
        for answer in answers:
            if isinstance(answer, RedisError):
                metrics.STORE_FAULTS.inc()
                raise StoreUnavailableError(str(answer)) from answer
        return answers

    def _key(self, table_id: str, part: str) -> str:
        return f"{self._prefix}:{{{table_id}}}:{part}"

    def _due_key(self, shard: int) -> str:
        return f"{self._prefix}:due:{shard}"

    def _unwritten_key(self, shard: int) -> str:
        return f"{self._prefix}:unwritten:{shard}"


def _shard(table_id: str) -> int:
    return zlib.crc32(table_id.encode()) % SHARDS


def _milliseconds(time_answer: Sequence[bytes]) -> int:
    seconds, micros = time_answer
    return int(seconds) * 1000 + int(micros) // 1000


def _place(value: bytes) -> tuple[int, int]:
    epoch, _, first = value.decode().partition(":")
    return int(epoch), int(first)
