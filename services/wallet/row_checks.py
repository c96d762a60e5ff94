"""Holds the stored rows of players, tables, hands, sittings and reservations to those that the batches make."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, Table, func, select, tuple_

from services.wallet.books import TableRow
from services.wallet.chart import PlayerState
from services.wallet.names import display_key
from services.wallet.schema import hands, player_changes, player_limits, players, reservations, sittings, table_ledgers
from services.wallet.story import Over, Story, TellFault

_KEYS_AT_ONCE: Final = 500

# Fences that moved no chips were not booked by earlier versions, so that these may be ahead of the batches.
_AT_LEAST: Final = ("epoch", "fenced_epoch")
_EXACTLY: Final = ("currency", "last_hand", "open_hand", "carry_since_hand")


class RowChecks:
    """Compares rows on a connection's snapshot, and tells the faults."""

    def __init__(self, conn: Connection, fault: TellFault) -> None:
        self._conn = conn
        self._fault = fault

    def compare(self, over: Over) -> None:
        """Each of these rows must be stored as the batches make it; what is only marked must be there."""
        self._compare_hands(over)
        self._compare_named("SITTING_DIFFERS", sittings, over.sittings, over.marked_sittings)
        self._compare_named("RESERVATION_DIFFERS", reservations, over.reservations, over.marked_reservations)
        self._compare_players(over.players)
        self._compare_changes(over.changes)

    def finish(self, story: Story) -> None:
        """What is open, and what only the whole story tells: tables, states, limits, how many rows there are."""
        self.compare(story.still_open())
        self._compare_tables(story)
        self._compare_states(story.states)
        self._compare_limits(story.limits)
        owned = sittings.c.player != "", reservations.c.player != ""
        for name, table, only in (
            ("SITTING_DIFFERS", sittings, owned[:1]),
            ("RESERVATION_DIFFERS", reservations, owned[1:]),
            ("PLAYER_DIFFERS", players, ()),
            ("PLAYER_DIFFERS", player_changes, ()),
        ):
            stored = self._conn.scalar(select(func.count()).select_from(table).where(*only)) or 0
            if stored != story.made[table.name]:
                self._fault(name, f"there are {stored} rows of {table.name}; the batches make {story.made[table.name]}")

    def _compare_hands(self, over: Over) -> None:
        stored: dict[tuple[str, int], Row[Any]] = {}
        wanted = {(row.table_id, row.hand) for row in over.hands} | over.marked_hands
        for some in _pieces(wanted):
            key = tuple_(hands.c.table_id, hands.c.hand)
            stored.update(
                {(row.table_id, row.hand): row for row in self._conn.execute(select(hands).where(key.in_(some)))}
            )
        for row in over.hands:
            self._hold("HAND_DIFFERS", f"hand {row.hand} of {row.table_id}", stored.get((row.table_id, row.hand)), row)
        for table_id, hand in sorted(over.marked_hands):
            if (table_id, hand) not in stored:
                self._fault("HAND_DIFFERS", f"hand {hand} of {table_id} was voided and has no row")

    def _compare_named(self, fault: str, table: Table, rows: Sequence[Any], marked: Collection[str]) -> None:
        name = table.name.removesuffix("s")
        key = table.c[name]
        stored = self._by_key(select(table), key, {getattr(row, name) for row in rows} | set(marked))
        for row in rows:
            self._hold(fault, f"{name} {getattr(row, name)}", stored.get(getattr(row, name)), row)
        for missing in sorted(set(marked) - stored.keys()):
            self._fault(fault, f"{name} {missing} was ended before it began and has no row")

    def _compare_players(self, made: dict[str, tuple[str, int]]) -> None:
        stored = self._by_key(select(players), players.c.player, made)
        for player, expected in made.items():
            row = stored.get(player)
            if row is None or (row.display_name, row.created_ms) != expected:
                self._fault("PLAYER_DIFFERS", f"player {player} is not as the batch made it, {expected[0]}")
            elif row.display_key not in display_keys(player, row.display_name):
                self._fault("PLAYER_DIFFERS", f"player {player} holds the name {row.display_key}")

    def _compare_changes(self, made: dict[int, tuple[str, int, str, str, int]]) -> None:
        columns = player_changes.c
        stored = self._by_key(select(player_changes), columns.change_no, made)
        for number, expected in made.items():
            row = stored.get(number)
            if row is None or tuple(row)[1:] != expected:
                self._fault(
                    "PLAYER_DIFFERS", f"change {number}, of {expected[0]} by {expected[3]}, is not as it was made"
                )

    def _compare_tables(self, story: Story) -> None:
        missing = {table for table, told in story.tables.items() if told.row.currency or told.row.last_hand}
        for stored in self._conn.execute(select(table_ledgers).order_by(table_ledgers.c.table_id)):
            missing.discard(stored.table_id)
            told = story.tables.get(stored.table_id)
            row = told.row if told is not None else TableRow.unknown(stored.table_id)
            wrong = [name for name in _EXACTLY if getattr(stored, name) != getattr(row, name)]
            wrong += [name for name in _AT_LEAST if getattr(stored, name) < getattr(row, name)]
            if stored.fenced_epoch == row.fenced_epoch and stored.fenced_hand != row.fenced_hand:
                wrong.append("fenced_hand")
            for name in wrong:
                self._differ("TABLE_DIFFERS", f"table {stored.table_id}", name, stored, row)
        for table in sorted(missing):
            self._fault("TABLE_DIFFERS", f"table {table} has batches and no row")

    def _compare_states(self, states: dict[str, int]) -> None:
        others = select(players.c.player).where(players.c.state != int(PlayerState.ACTIVE))
        frozen = {row.player for row in self._conn.execute(others)}
        expected = {player: state for player, state in states.items() if state != PlayerState.ACTIVE}
        for player in sorted(frozen ^ expected.keys()):
            said = PlayerState(expected.get(player, PlayerState.ACTIVE)).name
            self._fault("PLAYER_DIFFERS", f"player {player} is not {said}, as the last change says")

    def _compare_limits(self, limits: dict[str, tuple[str, str, int, int]]) -> None:
        stored = {row[0]: tuple(row)[1:] for row in self._conn.execute(select(player_limits))}
        for account in sorted(stored.keys() | limits.keys()):
            if stored.get(account) != limits.get(account):
                self._fault("PLAYER_DIFFERS", f"the limits on {account} are not those of the last change")

    def _by_key(self, query: Select[Any], key: Any, wanted: Iterable[Any]) -> dict[Any, Row[Any]]:
        stored: dict[Any, Row[Any]] = {}
        for some in _pieces(wanted):
            stored.update({getattr(row, key.name): row for row in self._conn.execute(query.where(key.in_(some)))})
        return stored

    def _hold(self, fault: str, what: str, stored: Row[Any] | None, row: Any) -> None:
        if stored is None:
            self._fault(fault, f"{what} has no row")
            return
        for name in row.__slots__:
            if getattr(stored, name) != getattr(row, name):
                self._differ(fault, what, name, stored, row)
                return

    def _differ(self, fault: str, what: str, name: str, stored: Row[Any], row: Any) -> None:
        made = getattr(row, name)
        made = made if isinstance(made, str) else int(made)
        self._fault(fault, f"{what} has {name} {getattr(stored, name)}; its batches make {made}")


def display_keys(player: str, display_name: str) -> tuple[str, ...]:
    """The keys under which a player may hold a name.

    Its own; a private one if that was taken when keys changed; the one of earlier versions, of which a process may have
    written it while the database was migrated.
    """
    key = display_key(display_name)
    return key, f"{key}#{player}", display_name.casefold()


def _pieces(wanted: Iterable[Any]) -> Iterator[list[Any]]:
    keys = sorted(wanted)
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        yield keys[start : start + _KEYS_AT_ONCE]
