"""Decisions about players and their cash: profiles, deposits, withdrawals, freezes."""

from __future__ import annotations

from services.runtime.errors import Fault
from services.wallet import chart, limits
from services.wallet import commands as c
from services.wallet.books import Books, Move, PlayerRow
from services.wallet.chart import AccountKind, PlayerState, TransferCode
from services.wallet.names import display_key


def create_player(books: Books, command: c.CreatePlayer) -> c.Player:
    """Makes a profile. Refused with PLAYER_EXISTS, then DISPLAY_NAME_TAKEN (by one that looks alike)."""
    if command.player in books.players:
        raise Fault("PLAYER_EXISTS", f"there is a player {command.player}", player=command.player)
    key = display_key(command.display_name)
    if key in books.display_keys:
        raise Fault(
            "DISPLAY_NAME_TAKEN",
            f"somebody is called {command.display_name}, or much like it",
            display_name=command.display_name,
        )
    row = PlayerRow(command.player, command.display_name, key, PlayerState.ACTIVE, books.now_ms)
    books.players[row.player] = row
    books.new_players[row.player] = row
    books.display_keys[key] = row.player
    return profile(row)


def deposit(books: Books, command: c.Deposit) -> c.Balance:
    """Cashier to player. Refused with PLAYER_NOT_FOUND, LIMIT_EXCEEDED, BALANCE_OVERFLOW; not for a freeze."""
    require_player(books, command.player)
    account = books.open_cash(command.player, command.currency)
    limits.require_deposit(books, account, command.amount_minor)
    cashier = _open_cashier(books, command.currency)
    books.post([Move(TransferCode.DEPOSIT, cashier, account, command.amount_minor)])
    limits.count(books, account, deposited=command.amount_minor)
    return c.Balance(command.currency, books.balance(account))


def withdraw(books: Books, command: c.Withdraw) -> c.Balance:
    """Player to cashier. Refused with PLAYER_NOT_FOUND, PLAYER_FROZEN, INSUFFICIENT_FUNDS."""
    require_active(require_player(books, command.player))
    account = books.open_cash(command.player, command.currency)
    cashier = _open_cashier(books, command.currency)
    books.post([Move(TransferCode.WITHDRAWAL, account, cashier, command.amount_minor)])
    return c.Balance(command.currency, books.balance(account))


def require_player(books: Books, player: str) -> PlayerRow:
    """The player's row, or PLAYER_NOT_FOUND."""
    row = books.players.get(player)
    if row is None:
        raise Fault("PLAYER_NOT_FOUND", f"there is no player {player}", player=player)
    return row


def require_active(row: PlayerRow) -> None:
    """Refuses new risk of a frozen player with PLAYER_FROZEN."""
    if row.state is PlayerState.FROZEN:
        raise Fault("PLAYER_FROZEN", f"player {row.player} is frozen", player=row.player)


def profile(row: PlayerRow) -> c.Player:
    """A player's row as the house shows it."""
    return c.Player(row.player, row.display_name, row.state, row.created_ms)


def _open_cashier(books: Books, currency: str) -> str:
    account = chart.cashier_account(currency, books.shard)
    books.open_account(account, AccountKind.CASHIER, "house", currency)
    return account
