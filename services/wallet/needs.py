"""Which rows a group of commands needs: said by name, before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

from services.wallet import chart
from services.wallet import commands as c
from services.wallet.books import Books
from services.wallet.chart import TransferCode
from services.wallet.names import display_key

# These end or read a hand, or list the table's stacks: they need every open sitting of their table.
_WHOLE_TABLE: Final = c.AwardPot | c.VoidHand | c.RefundCarry | c.FenceTable
_OF_A_PLAYER: Final = c.CreatePlayer | c.Deposit | c.Withdraw | c.AdjustBalance | c.BuyIn | c.ReserveBuyIn


def tables(wanted: Sequence[c.Command]) -> list[str]:
    """The tables, by id."""
    return sorted({command.table for command in wanted if isinstance(command, c.TableCommand)})


def whole_tables(wanted: Sequence[c.Command]) -> list[str]:
    """The tables of which every open sitting is needed, by id."""
    return sorted({command.table for command in wanted if isinstance(command, _WHOLE_TABLE)})


def hands(wanted: Sequence[c.Command]) -> set[tuple[str, int]]:
    """The hands named, as (table, hand)."""
    return {(command.table, command.hand) for command in wanted if isinstance(command, c.HandCommand)}


def hands_giving_back(wanted: Sequence[c.Command]) -> set[tuple[str, int]]:
    """The hands in which chips are given back as unmatched: what was paid into them must be known."""
    return {(command.table, command.hand) for command in wanted if _gives_back(command)}


def sittings(wanted: Sequence[c.Command]) -> set[str]:
    """The sittings named."""
    return {name for command in wanted for name in sittings_named(command)}


def sittings_named(command: c.Command) -> tuple[str, ...]:
    """The sittings that one command names."""
    match command:
        case c.BuyIn() | c.TopUp() | c.CashOut() | c.ReserveBuyIn():
            return (command.sitting,)
        case c.PostForced():
            return (*command.dealt_in, *(line.sitting for line in command.postings))
        case c.CollectBets():
            return tuple(line.sitting for line in (*command.bets, *command.returned))
        case c.AwardPot():
            return tuple(line.sitting for line in command.wins)
        case _:
            return ()


def reservations(wanted: Sequence[c.Command]) -> set[str]:
    """The reservations named; the sittings that they are for are needed too."""
    return {command.reservation for command in wanted if isinstance(command, c.ReservationCommand)}


def players(wanted: Sequence[c.Command]) -> set[str]:
    """The players named."""
    return {command.player for command in wanted if isinstance(command, _OF_A_PLAYER)}


def display_keys(wanted: Sequence[c.Command]) -> set[str]:
    """The display names wanted, as they are compared."""
    return {display_key(command.display_name) for command in wanted if isinstance(command, c.CreatePlayer)}


def accounts(wanted: Sequence[c.Command], books: Books) -> set[str]:
    """The accounts that may be read or posted to; sittings and tables must be at hand."""
    names: set[str] = set()
    for command in wanted:
        match command:
            case c.Deposit() | c.Withdraw():
                names.add(chart.cash_account(command.player, command.currency))
                names.add(chart.cashier_account(command.currency, books.shard))
            case c.AdjustBalance():
                names.add(chart.cash_account(command.player, command.currency))
                names.add(chart.cashier_account(command.currency, chart.ADJUSTMENTS))
            case c.BuyIn():
                names.add(chart.cash_account(command.player, command.currency))
                names.add(chart.stack_account(command.sitting))
            case c.ReserveBuyIn():
                names.add(chart.cash_account(command.player, command.currency))
                names.add(chart.reserved_account(command.reservation))
            case c.CommitReservation() | c.ReleaseReservation() | c.ExpireReservation():
                names |= _of_reservation(books, command.reservation)
            case c.SweepHouse():
                names.update(chart.hot_accounts(command.currency))
            case c.TopUp() | c.CashOut():
                row = books.sittings.get(command.sitting)
                if row is not None:
                    names.add(chart.cash_account(row.player, row.currency))
                names.add(chart.stack_account(command.sitting))
            case c.PostForced() | c.CollectBets():
                names.update(chart.stack_account(sitting) for sitting in sittings_named(command))
                names.add(chart.pot_account(command.table, command.hand))
                names.add(chart.carry_account(command.table))
            case c.AwardPot() | c.VoidHand() | c.RefundCarry() | c.FenceTable():
                names |= _of_whole_table(books, command)
    return names


def limited(wanted: Sequence[c.Command], books: Books) -> set[str]:
    """The cash accounts on which a limit of the day may bear."""
    names: set[str] = set()
    for command in wanted:
        match command:
            case c.Deposit() | c.BuyIn() | c.ReserveBuyIn():
                names.add(chart.cash_account(command.player, command.currency))
            case c.TopUp():
                row = books.sittings.get(command.sitting)
                if row is not None:
                    names.add(chart.cash_account(row.player, row.currency))
            case c.CommitReservation():
                # Its sitting is not on the books yet; whoever tops it up in the same commit is bound too.
                held = books.reservations.get(command.reservation)
                if held is not None:
                    names.add(chart.cash_account(held.player, held.currency))
    return names


def _gives_back(command: c.Command) -> TypeGuard[c.CollectBets | c.AwardPot]:
    match command:
        case c.CollectBets():
            return bool(command.returned)
        case c.AwardPot():
            return any(line.code is TransferCode.RETURN for line in command.wins)
        case _:
            return False


def _of_reservation(books: Books, reservation: str) -> set[str]:
    row = books.reservations.get(reservation)
    if row is None:
        return set()
    cash = chart.cash_account(row.player, row.currency)
    return {cash, chart.reserved_account(reservation), chart.stack_account(row.sitting)}


def _of_whole_table(books: Books, command: c.AwardPot | c.VoidHand | c.RefundCarry | c.FenceTable) -> set[str]:
    table = books.at_table(command.table)
    names = {chart.stack_account(row.sitting) for row in books.sittings_at.get(command.table, ())}
    names.add(chart.carry_account(command.table))
    if table.open_hand:
        names.add(chart.pot_account(command.table, table.open_hand))
    if isinstance(command, c.AwardPot | c.VoidHand):
        names.add(chart.pot_account(command.table, command.hand))
    if isinstance(command, c.AwardPot) and command.rake_minor and table.currency:
        names.add(chart.rake_account(table.currency, books.shard))
    return names
