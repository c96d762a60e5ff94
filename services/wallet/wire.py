"""The contract's names and messages in both directions: resource names and enums in, the ledger's values out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from google.protobuf.timestamp_pb2 import Timestamp
from grpc.aio import ServicerContext

from services.runtime.auth import Identity, current_identity
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.chart import TransferCode
from services.wallet.checks import invalid
from services.wallet.hand_reads import HandInLedger
from services.wallet.reads import PAGE_DEFAULT, PAGE_MAX

# These may see any player.
_STAFF: Final = frozenset({"operator", "finance", "auditor"})
_TIMESTAMP_SECONDS_MAX: Final = 253_402_300_799

Context = ServicerContext[Any, Any]


def namespace(identity: Identity) -> str:
    """The caller's namespace of batch ids: `person/alice`, `service/table`."""
    return f"{identity.kind}/{identity.id}"


def id_in(field: str, name: str, collection: str) -> str:
    """The id in `{collection}/{id}`, or INVALID_REQUEST naming the field."""
    found, _, rest = name.partition("/")
    # What is not printable (a NUL above all) is nothing that a database should be asked for.
    if found != collection or not rest.isprintable() or not rest:
        raise invalid(field, f"of the form {collection}/…")
    return rest


def page_size(asked: int) -> int:
    """How many a page holds; 0 asks for the usual number."""
    if not 0 <= asked <= PAGE_MAX:
        raise invalid("page_size", f"0 to {PAGE_MAX}")
    return asked or PAGE_DEFAULT


def visible_player(field: str, name: str) -> str:
    """The id in `players/{player}`; PERMISSION_DENIED where the caller may not see that player."""
    identity = current_identity()
    player = id_in(field, name, "players")
    if not identity.is_service and player != identity.id and _STAFF.isdisjoint(identity.roles):
        raise Fault("PERMISSION_DENIED", "a player may only see itself")
    return player


def amounts_in(
    field: str, lines: Iterable[pb.SittingAmount], default: TransferCode | None
) -> tuple[c.SittingAmount, ...]:
    """Chips by sitting; `default` is the code of a line that gives none. INVALID_REQUEST for what is no code."""
    return tuple(
        c.SittingAmount(line.sitting, line.amount_minor, _code(f"{field}.code", line.code, default)) for line in lines
    )


def _code(field: str, number: int, default: TransferCode | None) -> TransferCode:
    if number == pb.TRANSFER_CODE_UNSPECIFIED and default is not None:
        return default
    try:
        return TransferCode(number)
    except ValueError:
        raise invalid(field, "is not a code") from None


def millis(field: str, stamp: Timestamp) -> int:
    """A time in milliseconds since the Unix epoch, or INVALID_REQUEST naming the field."""
    if not 0 <= stamp.seconds <= _TIMESTAMP_SECONDS_MAX or not 0 <= stamp.nanos < 1_000_000_000:
        raise invalid(field, "is not a time")
    return stamp.seconds * 1000 + stamp.nanos // 1_000_000


def to_time(millis: int) -> Timestamp:
    """Milliseconds since the Unix epoch as the contract has them."""
    return Timestamp(seconds=millis // 1000, nanos=millis % 1000 * 1_000_000)


def to_enum(enum: Any, value: int) -> Any:
    """The generated stubs type enums more narrowly than the plain number that protobuf takes."""
    return enum.Name(value)


def to_player(player: c.Player) -> pb.Player:
    """A profile."""
    return pb.Player(
        name=f"players/{player.player}",
        display_name=player.display_name,
        state=to_enum(pb.PlayerState, player.state),
        create_time=to_time(player.created_ms),
        limits=[
            pb.PlayerLimits(
                currency=limit.currency,
                deposit_day_max_minor=limit.deposit_day_max_minor,
                buy_in_day_max_minor=limit.buy_in_day_max_minor,
            )
            for limit in player.limits
        ],
    )


def to_balance(balance: c.Balance) -> pb.Balance:
    """An amount in a currency."""
    return pb.Balance(currency=balance.currency, amount_minor=balance.amount_minor)


def to_stacks(stacks: Iterable[c.SittingStack]) -> list[pb.SittingStack]:
    """Stacks by sitting."""
    return [
        pb.SittingStack(
            sitting=stack.sitting, player=f"players/{stack.player}", stack_minor=stack.stack_minor, open=stack.open
        )
        for stack in stacks
    ]


def to_table_ledger(ledger: c.TableLedger) -> pb.TableLedger:
    """What the ledger knows of a table."""
    outcome = ledger.last_hand_outcome or 0
    return pb.TableLedger(
        epoch=ledger.epoch,
        last_hand=ledger.last_hand,
        last_hand_outcome=to_enum(pb.HandOutcome, outcome),
        last_hand_steps=ledger.last_hand_steps,
        stacks=to_stacks(ledger.stacks),
        carry_minor=ledger.carry_minor,
    )


def to_entry(entry: c.Entry) -> pb.Entry:
    """A line of a statement."""
    return pb.Entry(
        entry_id=entry.entry_id,
        batch_id=entry.batch_id,
        code=to_enum(pb.TransferCode, entry.code),
        currency=entry.currency,
        amount_minor=entry.amount_minor,
        balance_minor=entry.balance_minor,
        table=f"tables/{entry.table}" if entry.table else "",
        hand=entry.hand,
        commit_time=to_time(entry.committed_ms),
        account=entry.account,
    )


def to_hand(hand: HandInLedger) -> pb.LedgerHand:
    """One hand's money."""
    return pb.LedgerHand(
        table=f"tables/{hand.table}",
        hand=hand.hand,
        epoch=hand.epoch,
        outcome=to_enum(pb.HandOutcome, hand.outcome),
        open_time=to_time(hand.opened_ms),
        close_time=to_time(hand.closed_ms) if hand.closed_ms else None,
        currency=hand.currency,
        reason=hand.reason,
        sittings=[
            pb.LedgerHandSitting(
                sitting=each.sitting,
                player=f"players/{each.player}",
                seat=each.seat,
                ante_minor=each.ante_minor,
                blind_minor=each.blind_minor,
                bet_minor=each.bet_minor,
                returned_minor=each.returned_minor,
                won_minor=each.won_minor,
                refunded_minor=each.refunded_minor,
            )
            for each in hand.sittings
        ],
        pot_minor=hand.pot_minor,
        rake_minor=hand.rake_minor,
        carry_in_minor=hand.carry_in_minor,
        carry_out_minor=hand.carry_out_minor,
    )
