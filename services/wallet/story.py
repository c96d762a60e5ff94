"""The rows that the batches make, told again from the first one on: what the audit holds the stored rows to.

Whoever writes beside the ledger can change a row (whose a stack is, which hand locks it, since when a carry grows) and
let the ledger itself pay the wrong person afterwards. The batches are sealed and say who sat down, was dealt in and
paid; so the story is told from them alone, and rows as well as payments that name nobody are held to it. What is over
(a closed hand, sitting or reservation) is handed out to be compared and forgotten, or a long ledger would not fit into
memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from services.wallet.books import HandRow, ReservationRow, SittingRow, TableRow

TellFault = Callable[[str, str], None]
"""Takes a fault down: its name, and what is wrong."""


@dataclass(slots=True)
class Payer:
    """What a sitting paid into the hands that a carry passed through, and where its share is due."""

    sitting: SittingRow
    paid: int = 0


@dataclass(slots=True)
class OpenHand:
    """An open hand: its row so far, what each stack paid into its pot, and who was dealt in."""

    row: HandRow
    dealt_in: dict[str, SittingRow]
    paid: Counter[str] = field(default_factory=Counter)
    carried_in: int = 0


@dataclass(slots=True)
class Table:
    """A table as its batches tell it. `marks` are hands above the last one that were voided before they came."""

    row: TableRow
    hand: OpenHand | None = None
    payers: dict[str, Payer] = field(default_factory=dict)
    marks: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Over:
    """Rows that no later batch changes, to be compared and forgotten; `marked` need only be there."""

    hands: list[HandRow] = field(default_factory=list)
    sittings: list[SittingRow] = field(default_factory=list)
    reservations: list[ReservationRow] = field(default_factory=list)
    players: dict[str, tuple[str, int]] = field(default_factory=dict)
    changes: dict[int, tuple[str, int, str, str, int]] = field(default_factory=dict)
    marked_hands: set[tuple[str, int]] = field(default_factory=set)
    marked_sittings: set[str] = field(default_factory=set)
    marked_reservations: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Story:
    """What is known up to some batch. `balances` are those of the entries, before the batch that is being told."""

    fault: TellFault
    balances: dict[str, int]
    tables: dict[str, Table] = field(default_factory=dict)
    sittings: dict[str, SittingRow] = field(default_factory=dict)
    reservations: dict[str, ReservationRow] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    limits: dict[str, tuple[str, str, int, int]] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    over: Over = field(default_factory=Over)

    def table(self, table_id: str) -> Table:
        """A table, which is empty where nothing was told of it yet."""
        table = self.tables.get(table_id)
        if table is None:
            table = self.tables[table_id] = Table(TableRow.unknown(table_id))
        return table

    def still_open(self) -> Over:
        """The rows that are not over: open hands, sittings and reservations."""
        hands = [table.hand.row for table in self.tables.values() if table.hand]
        return Over(hands, list(self.sittings.values()), list(self.reservations.values()))
