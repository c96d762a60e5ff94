"""The ledger: one method for each thing that can be asked of it, and the queue in which batches share a commit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.database import Database, DatabaseBusyError
from services.runtime.errors import Fault
from services.wallet import checks, group, metrics, reads
from services.wallet import commands as c
from services.wallet.books import BooksBrokenError
from services.wallet.chart import PlayerState
from services.wallet.schema import ledger_state, player_changes, players

GROUP_MAX: Final = 128
QUEUE_MAX: Final = 4_096
# Two processes that first write the same id at the same moment: the later one reads it on its next attempt.
COLLISIONS_MAX: Final = 4

TABLE_SERVICE: Final = "service/table"

A = TypeVar("A", bound=c.Answer)

_log = telemetry.logger("wallet.ledger")


@dataclass(slots=True)
class _Waiting:
    key: str
    command: c.Command
    outcome: asyncio.Future[c.Answer]


class Ledger:
    """Every chip of the house, in double entry, on one SQL database.

    `caller` is the namespace of batch ids (`person/alice`, `service/table`). Batches that wait while a commit is under
    way share the next one: at most `group_max` of them, after waiting `group_wait_ms` for more; past `queue_max`
    waiting ones a call fails with QUEUE_FULL. `shard` names the sub-account of rake and cashier that this process posts
    to. All methods raise `Fault`; its reasons are those of the contract and of docs/ledger.md.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        group_max: int = GROUP_MAX,
        queue_max: int = QUEUE_MAX,
        group_wait_ms: int = 0,
        shard: int = 0,
        failpoint: group.Failpoint = group.no_failpoint,
    ) -> None:
        self._db = db
        self._clock = clock
        self._group_max = group_max
        self._queue_max = queue_max
        self._group_wait_seconds = group_wait_ms / 1000
        self._shard = shard
        self._failpoint = failpoint
        self._waiting: deque[_Waiting] = deque()
        self._committer: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Waits until every batch that was taken in is answered."""
        if self._committer is not None:
            await self._committer

    async def create_player(self, command: c.CreatePlayer, *, caller: str) -> c.Player:
        """Makes a profile."""
        return await self._submit(command, caller, c.Player)

    async def deposit(self, command: c.Deposit, *, caller: str) -> c.Balance:
        """Cashier to player; returns the player's cash afterwards."""
        return await self._submit(command, caller, c.Balance)

    async def withdraw(self, command: c.Withdraw, *, caller: str) -> c.Balance:
        """Player to cashier; returns the player's cash afterwards."""
        return await self._submit(command, caller, c.Balance)

    async def set_player_state(self, command: c.SetPlayerState, *, caller: str) -> c.Player:
        """Freezes or unfreezes; the same state again changes nothing."""
        checks.check(command)
        return await self._db.write(_set_player_state, command, caller, self._clock.now_ms())

    async def buy_in(self, command: c.BuyIn, *, caller: str = TABLE_SERVICE) -> c.Stack:
        """Opens a sitting with a stack."""
        return await self._submit(command, caller, c.Stack)

    async def top_up(self, command: c.TopUp, *, caller: str = TABLE_SERVICE) -> c.Stack:
        """Adds to a stack between hands."""
        return await self._submit(command, caller, c.Stack)

    async def cash_out(self, command: c.CashOut, *, caller: str = TABLE_SERVICE) -> c.CashedOut:
        """Closes a sitting."""
        return await self._submit(command, caller, c.CashedOut)

    async def post_forced(self, command: c.PostForced, *, caller: str = TABLE_SERVICE) -> c.Pot:
        """Opens a hand."""
        return await self._submit(command, caller, c.Pot)

    async def collect_bets(self, command: c.CollectBets, *, caller: str = TABLE_SERVICE) -> c.Pot:
        """Moves a round's bets into the pot."""
        return await self._submit(command, caller, c.Pot)

    async def award_pot(self, command: c.AwardPot, *, caller: str = TABLE_SERVICE) -> c.Awarded:
        """Pays a hand out and closes it."""
        return await self._submit(command, caller, c.Awarded)

    async def void_hand(self, command: c.VoidHand, *, caller: str = TABLE_SERVICE) -> c.Voided:
        """Undoes a hand and closes it."""
        return await self._submit(command, caller, c.Voided)

    async def refund_carry(self, command: c.RefundCarry, *, caller: str = TABLE_SERVICE) -> c.CarryRefunded:
        """Gives a carry back to those who paid it."""
        return await self._submit(command, caller, c.CarryRefunded)

    async def fence_table(self, command: c.FenceTable, *, caller: str = TABLE_SERVICE) -> c.Fenced:
        """Shuts older epochs out; voids a hand that one of them left open."""
        return await self._submit(command, caller, c.Fenced)

    async def get_table_ledger(self, table: str) -> c.TableLedger:
        """What the ledger knows of a table; one that it never saw is at epoch 0 with nothing."""
        checks.check_table(table)
        return await self._db.read(reads.table_ledger, table)

    async def get_player(self, player: str) -> c.Player:
        """A profile, or PLAYER_NOT_FOUND."""
        checks.check_player(player)
        return await self._db.read(reads.player, player)

    async def get_balances(self, player: str) -> c.Balances:
        """A player's chips by currency, or PLAYER_NOT_FOUND."""
        checks.check_player(player)
        return await self._db.read(reads.balances, player)

    async def list_entries(self, query: reads.EntryQuery) -> c.EntryPage:
        """A page of a player's statement, newest first, or PLAYER_NOT_FOUND."""
        checks.check_player(query.player)
        return await self._db.read(reads.entries, query)

    async def get_ledger_summary(self) -> c.LedgerSummary:
        """Totals by kind of account and currency."""
        summary = await self._db.read(reads.summary)
        metrics.show_summary(summary)
        return summary

    async def _submit(self, command: c.Command, caller: str, answer: type[A]) -> A:
        checks.check(command)
        if len(self._waiting) >= self._queue_max:
            metrics.REFUSALS.labels("QUEUE_FULL").inc()
            raise Fault("QUEUE_FULL", f"{self._queue_max} batches are waiting")
        waiting = _Waiting(group.batch_key(caller, command), command, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._committer is None or self._committer.done():
            self._committer = asyncio.create_task(self._commit_all())
        return cast(A, await waiting.outcome)

    async def _commit_all(self) -> None:
        while self._waiting:
            if self._group_wait_seconds and len(self._waiting) < self._group_max:
                await self._clock.sleep(self._group_wait_seconds)
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._group_max))]
            # A caller that gave up while waiting withdraws its batch; nothing of it has run.
            taken = [waiting for waiting in taken if not waiting.outcome.done()]
            if taken:
                await self._commit(taken)

    async def _commit(self, taken: Sequence[_Waiting]) -> None:
        asked = [(waiting.key, waiting.command) for waiting in taken]
        try:
            outcomes = await self._write(asked)
        except (IntegrityError, BooksBrokenError) as error:
            if len(taken) > 1:
                # One of them spoils the others' commit: each goes alone.
                for waiting in taken:
                    await self._commit([waiting])
                return
            outcomes = [await self._give_up(asked[0][1], error)]
        except (DBAPIError, DatabaseBusyError) as error:
            _log.error("commit failed", batches=len(taken), error=str(error))
            outcomes = [Fault("SERVICE_UNAVAILABLE", "the ledger could not be written") for _ in taken]
        except asyncio.CancelledError:
            for waiting in taken:
                waiting.outcome.cancel()
            raise
        self._failpoint("committed")
        metrics.GROUP_SIZE.observe(len(taken))
        for waiting, outcome in zip(taken, outcomes, strict=True):
            metrics.count(waiting.command, outcome)
            if waiting.outcome.done():
                continue
            if isinstance(outcome, Fault):
                waiting.outcome.set_exception(outcome)
            else:
                waiting.outcome.set_result(outcome)

    async def _write(self, asked: Sequence[tuple[str, c.Command]]) -> list[c.Answer | Fault]:
        for attempt in range(1, COLLISIONS_MAX + 1):
            try:
                return await self._db.write(
                    group.decide_group, asked, self._shard, self._clock.now_ms(), self._failpoint
                )
            except IntegrityError:
                if attempt == COLLISIONS_MAX:
                    raise
        raise BooksBrokenError("no attempt was made")

    async def _give_up(self, command: c.Command, error: Exception) -> Fault:
        """The books contradict themselves or their schema: no new hand until somebody has looked."""
        metrics.BROKEN.inc()
        _log.critical("the books are broken", command=type(command).__name__, error=str(error))
        await self._db.write(close_ledger, f"{type(command).__name__}: {error}"[:500])
        return Fault("INTERNAL", "the ledger stopped at a contradiction; it was recorded and nothing was moved")


def close_ledger(conn: Connection, reason: str) -> None:
    """Stops new hands until a clean audit; the first reason stays."""
    conn.execute(
        update(ledger_state)
        .where(ledger_state.c.id == 1, ledger_state.c.closed_reason == "")
        .values(closed_reason=reason)
    )


def _set_player_state(conn: Connection, command: c.SetPlayerState, caller: str, now_ms: int) -> c.Player:
    row = conn.execute(select(players).where(players.c.player == command.player).with_for_update()).one_or_none()
    if row is None:
        raise Fault("PLAYER_NOT_FOUND", f"there is no player {command.player}", player=command.player)
    if row.state != command.state:
        conn.execute(update(players).where(players.c.player == command.player).values(state=int(command.state)))
        conn.execute(
            insert(player_changes).values(
                player=command.player,
                state=int(command.state),
                reason=command.reason,
                changed_by=caller,
                changed_ms=now_ms,
            )
        )
    return c.Player(row.player, row.display_name, PlayerState(command.state), row.created_ms)
