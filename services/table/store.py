"""Where the state and log of a table live. One commit writes both and publishes, or nothing at all.

`RedisStore` is the real one; `MemoryStore` is the same contract in one process, for simulations. The suite runs one
set of tests on both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import msgspec

from services.table.bus import Batch

KEEP_DEADLINE: Final = -1
CLEAR_DEADLINE: Final = -2

LOG_READ_MAX: Final = 2_000


class Version(msgspec.Struct, frozen=True, gc=False):
    """Where a table's line of history stands. `commit` is random, so that two lines never look alike."""

    epoch: int = 0
    version: int = 0
    commit: str = ""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """A table as it is stored: its sealed state, the last sequence, and the deadline in the store's own time or 0."""

    at: Version
    blob: bytes
    sequence: int
    deadline_ms: int
    now_ms: int


class Commit(msgspec.Struct, frozen=True, gc=False):
    """One atomic write: only if the table still stands at `expected` (or, with a higher epoch, below that epoch).

    `lobby` is the table as a lobby lists it, a serialized `Table`, in the clear.
    """

    expected: Version
    following: Version
    blob: bytes
    sequence: int
    batch: Batch | None
    deadline: int = KEEP_DEADLINE
    lobby: bytes = b""


class Committed(msgspec.Struct, frozen=True, gc=False):
    """The store's time at the commit, and the deadline that now holds (0: none)."""

    now_ms: int
    deadline_ms: int


class Due(msgspec.Struct, frozen=True, gc=False):
    """A table that the index says is due, and the time for which it was entered."""

    table_id: str
    due_ms: int


class Unwritten(msgspec.Struct, frozen=True, gc=False):
    """A finished hand whose history is not confirmed. Its events begin at `first` in epoch `first_epoch`."""

    table_id: str
    epoch: int
    hand: int
    first_epoch: int = 0
    first: int = 0


class Outage(msgspec.Struct, frozen=True, gc=False):
    """A time in which no process of the house swept, in the store's time; both 0 if there was none."""

    start_ms: int = 0
    end_ms: int = 0


class StoreUnavailableError(RuntimeError):
    """The store could not be reached in time; the outcome of a commit is then unknown."""


class TableStore(Protocol):
    """Everything that the table service keeps outside SQL. Every method may raise `StoreUnavailableError`."""

    async def load(self, table_id: str) -> Stored | None:
        """The table as it is stored, or None."""
        ...

    async def commit(self, table_id: str, commit: Commit) -> Committed | None:
        """Writes state, log and publication at once; None if the table has moved on. Enters the due time first.

        The same commit again, after an answer was lost, gets the first answer.
        """
        ...

    async def read_log(self, table_id: str, epoch: int, after: int, limit: int) -> list[Batch]:
        """Batches of this epoch with events beyond `after`, in order, about `limit` events at most."""
        ...

    async def read_from(self, table_id: str, epoch: int, first: int, limit: int) -> list[Batch]:
        """Batches from an event on, over all later epochs, in order."""
        ...

    def subscribe(self, table_id: str) -> AbstractAsyncContextManager[AsyncIterator[Batch | None]]:
        """Batches as they are committed by any process, some of which may be lost; None when none came for a while."""
        ...

    async def claim_due(self, limit: int, hold_ms: int) -> list[Due]:
        """Tables that are due now; each is put off by `hold_ms`, so that one sweeper has it for that time."""
        ...

    async def enter_due(self, table_id: str, due_ms: int) -> None:
        """Enters a table into the index, only ever to an earlier time."""
        ...

    async def note_due(self, table_id: str, due_ms: int) -> None:
        """As `enter_due`, beside a commit: nothing to do where this process has surely entered an earlier time."""
        ...

    async def settle_due(self, due: Due, hold_ms: int, next_ms: int) -> None:
        """Puts a claimed table off to `next_ms` (0: takes it out), unless somebody has entered another time since."""
        ...

    async def mark_unwritten(self, hand: Unwritten) -> None:
        """Says that a hand's history is due; called before the commit that ends the hand. Again: no change."""
        ...

    async def confirm_written(self, table_id: str, epoch: int, hand: int, keep: int) -> None:
        """Takes a hand off the list and trims what no hand needs any more, but for about the last `keep` batches."""
        ...

    async def find_unwritten(self, table_id: str, epoch: int, hand: int) -> Unwritten | None:
        """The entry of one hand, or None."""
        ...

    async def list_unwritten(self, limit: int, older_than_ms: int) -> list[Unwritten]:
        """Hands whose history is due for at least that long, oldest first."""
        ...

    async def unwritten(self) -> tuple[int, int]:
        """How many hands' histories are due, and for how many milliseconds the oldest is."""
        ...

    async def load_lobby(self, table_ids: Sequence[str]) -> list[bytes]:
        """The lobby's rows of these tables, in order; empty for one that is not stored."""
        ...

    async def hint_lobby(self, table_id: str) -> None:
        """Says that a lobby's row has changed."""
        ...

    async def changed_lobby(self, since_ms: int, limit: int) -> list[str]:
        """Tables whose rows changed since then, at most `limit`, the longest ago first."""
        ...

    async def beat(self, gap_max_ms: int) -> Outage:
        """Leaves a sweep's heartbeat; the answer is the last time the house went without one for longer than that."""
        ...

    async def now_ms(self) -> int:
        """The store's own time."""
        ...
