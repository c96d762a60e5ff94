"""One hand's money, from the entries alone: who paid what into the pot, and who got what out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select, text

from services.runtime.errors import Fault
from services.wallet import chart
from services.wallet import commands as c
from services.wallet.books import BooksBrokenError, Move
from services.wallet.chart import HandOutcome, TransferCode
from services.wallet.group import OK
from services.wallet.schema import batches, hands, sittings, table_ledgers, transfers

_PAID: Final = {
    TransferCode.ANTE: "ante_minor",
    TransferCode.BLIND: "blind_minor",
    TransferCode.BET: "bet_minor",
}
_GOT: Final = {
    TransferCode.RETURN: "returned_minor",
    TransferCode.WIN: "won_minor",
    TransferCode.VOID: "refunded_minor",
}
_OF_THE_TABLE: Final = {
    TransferCode.RAKE: "rake_minor",
    TransferCode.CARRY_IN: "carry_in_minor",
    TransferCode.CARRY_OUT: "carry_out_minor",
}


class SittingInHand(Struct):
    """What one sitting paid into a hand's pot and got out of it, by what for."""

    sitting: str
    player: str
    seat: int
    ante_minor: int = 0
    blind_minor: int = 0
    bet_minor: int = 0
    returned_minor: int = 0
    won_minor: int = 0
    refunded_minor: int = 0


class HandInLedger(Struct):
    """One hand; `closed_ms` is 0 while it is open, `reason` empty unless it is void, sittings are by seat."""

    table: str
    hand: int
    epoch: int
    outcome: HandOutcome
    opened_ms: int
    closed_ms: int
    currency: str
    reason: str
    sittings: tuple[SittingInHand, ...]
    rake_minor: int = 0
    carry_in_minor: int = 0
    carry_out_minor: int = 0

    @property
    def pot_minor(self) -> int:
        """All that was in the pot: carry in and what was paid, less what was given back unmatched."""
        paid = sum(each.ante_minor + each.blind_minor + each.bet_minor for each in self.sittings)
        return self.carry_in_minor + paid - sum(each.returned_minor for each in self.sittings)


def read_hand(conn: Connection, table: str, number: int) -> HandInLedger:
    """One hand, open or closed. Raises `Fault` HAND_NOT_FOUND where the ledger never saw it."""
    row = conn.execute(
        select(hands, table_ledgers.c.currency)
        .join(table_ledgers, table_ledgers.c.table_id == hands.c.table_id)
        .where(hands.c.table_id == table, hands.c.hand == number)
    ).one_or_none()
    if row is None:
        raise Fault(
            "HAND_NOT_FOUND",
            f"the ledger has no hand {number} of table {table}",
            table=f"tables/{table}",
            hand=str(number),
        )
    seated = {each.sitting: each for each in _dealt_in(conn, table, number)}
    hand = HandInLedger(
        table=table,
        hand=number,
        epoch=row.epoch,
        outcome=HandOutcome(row.outcome),
        opened_ms=row.opened_ms,
        closed_ms=row.closed_ms,
        currency=row.currency,
        reason=row.reason,
        sittings=tuple(sorted(seated.values(), key=lambda each: (each.seat, each.sitting))),
    )
    for code, debit, credit, amount in conn.execute(
        _of_hand(select(transfers.c.code, transfers.c.debit, transfers.c.credit, transfers.c.amount), table, number)
        .join(transfers, transfers.c.batch_no == batches.c.batch_no)
        .order_by(transfers.c.batch_no, transfers.c.line)
    ):
        _add(hand, seated, Move(TransferCode(code), debit, credit, amount))
    return hand


def _add(hand: HandInLedger, seated: dict[str, SittingInHand], move: Move) -> None:
    code = move.code
    if code in _OF_THE_TABLE:
        _raise_by(hand, _OF_THE_TABLE[code], move.amount_minor)
    elif code in _PAID:
        _raise_by(_owner(seated, move.debit), _PAID[code], move.amount_minor)
    elif code in _GOT and move.credit != chart.carry_account(hand.table):
        _raise_by(_owner(seated, move.credit), _GOT[code], move.amount_minor)


def _raise_by(counted: SittingInHand | HandInLedger, name: str, amount: int) -> None:
    setattr(counted, name, getattr(counted, name) + amount)


def _owner(seated: dict[str, SittingInHand], account: str) -> SittingInHand:
    """Whose account it is: a sitting's stack, or the cash of a player whose sitting was closed before the refund."""
    kind, _, rest = account.partition("/")
    if kind == "stack" and rest in seated:
        return seated[rest]
    for each in seated.values():
        if kind == "player" and rest.rpartition("/")[0] == each.player:
            return each
    raise BooksBrokenError(f"{account} is in a hand and was not dealt in")


def _dealt_in(conn: Connection, table: str, number: int) -> list[SittingInHand]:
    """Everyone whom the batch that opened the hand dealt in; nobody where nothing opened it."""
    content = conn.scalar(
        _of_hand(select(batches.c.content), table, number).where(batches.c.operation == c.PostForced.__name__)
    )
    if content is None:
        return []
    names: Sequence[str] = msgspec.json.decode(content, type=c.PostForced).dealt_in
    found = conn.execute(
        select(sittings.c.sitting, sittings.c.player, sittings.c.seat).where(sittings.c.sitting.in_(names))
    )
    return [SittingInHand(*each) for each in found]


def _of_hand(query: Any, table: str, number: int) -> Any:
    """Batches of a hand that were not refused; the literal condition is that of their index."""
    return query.where(
        batches.c.table_id == table, batches.c.hand == number, text("batches.hand > 0"), batches.c.outcome == OK
    )
