"""The ledger: one method for each thing that can be asked of it, and the queue in which batches share a commit."""

from __future__ import annotations

from typing import Final, TypeVar, cast

from sqlalchemy import Connection, select, update

from services.runtime.clock import Clock
from services.runtime.database import Database
from services.runtime.errors import Fault
from services.wallet import changes, checks, group, hand_reads, limits, metrics, reads, reports, reservation_reads
from services.wallet import commands as c
from services.wallet.commits import GroupCommitter
from services.wallet.schema import players

GROUP_MAX: Final = 128
QUEUE_MAX: Final = 4_096
# With 16 tables one lane answered sooner than two (p99 19 against 24 ms on two cores), with 256 two gave a third more.
CROWD_MIN: Final = 32

TABLE_SERVICE: Final = "service/table"
WALLET_SERVICE: Final = "service/wallet"

A = TypeVar("A", bound=c.Answer)


class Ledger:
    """Every chip of the house, in double entry, on one SQL database.

    `caller` is the namespace of batch ids (`person/alice`, `service/table`). Batches that wait while a commit is under
    way share the next one: at most `group_max` of them, after waiting `group_wait_ms` for more. While more than
    `crowd_min` wait, up to `lanes` commits run side by side (one is right for SQLite, which has one writer); all the
    same the batches of a table, or of a player's cash, are decided in the order of their coming. Past `queue_max`
    waiting batches a call fails with QUEUE_FULL. `shard` names the first lane's sub-account of rake and cashier, the
    others follow it. All methods raise `Fault`; its reasons are those of the contract and of docs/ledger.md.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        lanes: int = 1,
        crowd_min: int = CROWD_MIN,
        group_max: int = GROUP_MAX,
        queue_max: int = QUEUE_MAX,
        group_wait_ms: int = 0,
        shard: int = 0,
        failpoint: group.Failpoint = group.no_failpoint,
    ) -> None:
        self._db = db
        self._clock = clock
        self._committer = GroupCommitter(
            db,
            clock,
            lanes=lanes,
            crowd_min=crowd_min,
            group_max=group_max,
            queue_max=queue_max,
            wait_ms=group_wait_ms,
            shard=shard,
            failpoint=failpoint,
        )

    async def close(self) -> None:
        """Waits until every batch that was taken in is answered."""
        await self._committer.close()

    async def create_player(self, command: c.CreatePlayer, *, caller: str) -> c.Player:
        """Makes a profile."""
        return await self._submit(command, caller, c.Player)

    async def deposit(self, command: c.Deposit, *, caller: str) -> c.Balance:
        """Cashier to player; returns the player's cash afterwards."""
        return await self._submit(command, caller, c.Balance)

    async def withdraw(self, command: c.Withdraw, *, caller: str) -> c.Balance:
        """Player to cashier; returns the player's cash afterwards."""
        return await self._submit(command, caller, c.Balance)

    async def adjust_balance(self, command: c.AdjustBalance, *, caller: str) -> c.Balance:
        """Corrects a player's cash; returns it afterwards."""
        return await self._submit(command, caller, c.Balance)

    async def set_player_state(self, command: c.SetPlayerState, *, caller: str) -> c.Player:
        """Freezes or unfreezes; the same state again changes nothing."""
        checks.check(command)
        return await self._db.write(_set_player_state, command, caller, self._clock.now_ms())

    async def set_player_limits(self, command: c.SetPlayerLimits, *, caller: str) -> c.Player:
        """Limits what a player may deposit and take to tables in a day; from the next batch on."""
        checks.check(command)
        return await self._db.write(_set_player_limits, command, caller, self._clock.now_ms())

    async def buy_in(self, command: c.BuyIn, *, caller: str = TABLE_SERVICE) -> c.Stack:
        """Opens a sitting with a stack."""
        return await self._submit(command, caller, c.Stack)

    async def top_up(self, command: c.TopUp, *, caller: str = TABLE_SERVICE) -> c.Stack:
        """Adds to a stack between hands."""
        return await self._submit(command, caller, c.Stack)

    async def cash_out(self, command: c.CashOut, *, caller: str = TABLE_SERVICE) -> c.CashedOut:
        """Closes a sitting."""
        return await self._submit(command, caller, c.CashedOut)

    async def reserve_buy_in(self, command: c.ReserveBuyIn, *, caller: str = TABLE_SERVICE) -> c.Reservation:
        """Holds cash for a buy-in."""
        return await self._submit(command, caller, c.Reservation)

    async def commit_reservation(self, command: c.CommitReservation, *, caller: str = TABLE_SERVICE) -> c.Stack:
        """Opens the sitting with what was held."""
        return await self._submit(command, caller, c.Stack)

    async def release_reservation(self, command: c.ReleaseReservation, *, caller: str = TABLE_SERVICE) -> c.Released:
        """Gives what was held back."""
        return await self._submit(command, caller, c.Released)

    async def expire_reservation(self, command: c.ExpireReservation) -> c.Released:
        """Gives back what was held past its time."""
        return await self._submit(command, WALLET_SERVICE, c.Released)

    async def sweep_house(self, command: c.SweepHouse) -> c.Swept:
        """Gathers one currency's sub-accounts of rake and cashier into their heads."""
        return await self._submit(command, WALLET_SERVICE, c.Swept)

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

    async def get_balances(self, player: str, at_ms: int | None = None) -> c.Balances:
        """A player's chips by currency, now or as they were at a time, or PLAYER_NOT_FOUND."""
        checks.check_player(player)
        if at_ms is not None:
            return await self._db.read(reads.balances_at, player, at_ms)
        return await self._db.read(reads.balances, player)

    async def list_entries(self, query: reads.EntryQuery) -> c.EntryPage:
        """A page of a player's statement, newest first, or PLAYER_NOT_FOUND."""
        checks.check_player(query.player)
        return await self._db.read(reads.entries, query)

    async def get_hand(self, table: str, hand: int) -> hand_reads.HandInLedger:
        """One hand's money from its entries, or HAND_NOT_FOUND."""
        checks.check_table(table)
        checks.check_hand(hand)
        return await self._db.read(hand_reads.read_hand, table, hand)

    async def get_reservation(self, table: str, reservation: str) -> c.Reservation:
        """One reservation as it stands, or RESERVATION_NOT_FOUND."""
        checks.check_table(table)
        checks.check_reservation(reservation)
        return await self._db.read(reservation_reads.one, table, reservation)

    async def list_reservations(
        self, table: str = "", after: str = "", limit: int = reads.PAGE_DEFAULT
    ) -> tuple[c.Reservation, ...]:
        """Open reservations, of one table or of all, by id after the one given."""
        return await self._db.read(reservation_reads.open_ones, table, after, limit)

    async def get_ledger_summary(self) -> c.LedgerSummary:
        """Totals by kind of account and currency."""
        summary = await self._db.read(reads.summary)
        metrics.show_summary(summary)
        return summary

    async def get_rake_report(self, since_ms: int, before_ms: int, table: str = "") -> reports.RakeReport:
        """The rake by table and day, from one time up to and without another."""
        return await self._db.read(reports.rake, since_ms, before_ms, table)

    async def list_chips_in_play(
        self, after: str = "", limit: int = reads.PAGE_DEFAULT
    ) -> tuple[reports.ChipsInPlay, ...]:
        """Tables with chips on them, by id after the one given."""
        return await self._db.read(reports.chips_in_play, after, limit)

    async def list_dormant_balances(
        self, idle_since_ms: int, limit: int = reads.PAGE_DEFAULT
    ) -> reports.DormantBalances:
        """Cash that has not moved since a time, the largest first."""
        return await self._db.read(reports.dormant, idle_since_ms, limit)

    async def _submit(self, command: c.Command, caller: str, answer: type[A]) -> A:
        checks.check(command)
        return cast(A, await self._committer.submit(group.batch_key(caller, command), _subject(command), command))


def _subject(command: c.Command) -> str:
    """Whose batches are decided in the order of their coming."""
    if isinstance(command, c.SweepHouse):
        return command.currency
    return command.table if isinstance(command, c.TableCommand) else command.player


def _set_player_state(conn: Connection, command: c.SetPlayerState, caller: str, now_ms: int) -> c.Player:
    changes.begin(conn)
    if _locked_state(conn, command.player) != command.state:
        conn.execute(update(players).where(players.c.player == command.player).values(state=int(command.state)))
        changes.book(conn, changes.StateChanged(command.player, int(command.state), command.reason, caller), now_ms)
    return reads.player(conn, command.player)


def _set_player_limits(conn: Connection, command: c.SetPlayerLimits, caller: str, now_ms: int) -> c.Player:
    changes.begin(conn)
    state = _locked_state(conn, command.player)
    limits.set_limits(conn, command)
    deposit, buy_in = command.deposit_day_max_minor, command.buy_in_day_max_minor
    changes.book(
        conn,
        changes.LimitsChanged(command.player, command.currency, deposit, buy_in, state, command.reason, caller),
        now_ms,
    )
    return reads.player(conn, command.player)


def _locked_state(conn: Connection, player: str) -> int:
    """The player's state, the row locked; or PLAYER_NOT_FOUND."""
    state = conn.scalar(select(players.c.state).where(players.c.player == player).with_for_update())
    if state is None:
        raise Fault("PLAYER_NOT_FOUND", f"there is no player {player}", player=player)
    return int(state)
