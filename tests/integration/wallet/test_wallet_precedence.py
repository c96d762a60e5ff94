"""When several refusals apply, the first of the documented order is the answer.

Each operation starts with everything wrong that can be wrong at once; what is refused first is then put right, and so
on, until the operation succeeds. The order is read from docs/ledger.md.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.chart import BALANCE_MAX_MINOR, PlayerState, TransferCode
from services.wallet.closures import close_ledger
from tests.integration.wallet.house import House, antes, bets, returned, wins

DOCUMENT = Path(__file__).parents[3] / "docs" / "ledger.md"

# What is put right after each refusal, in turn.
Repairs = AsyncIterator[c.Command]


def documented() -> dict[str, list[str]]:
    rows = re.findall(r"^\| (\w+) \| ([A-Z_, ]+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {operation: order.split(", ") for operation, order in rows}


@dataclass(frozen=True)
class Desk:
    house: House
    close: Callable
    reopen: Callable


async def create_player(desk: Desk) -> Repairs:
    command = c.CreatePlayer("x", "ann", "BOB")
    yield command
    yield (command := replace(command, player="new"))
    yield replace(command, display_name="New")


async def deposit(desk: Desk) -> Repairs:
    command = c.Deposit("x", "nobody", "EUR", BALANCE_MAX_MINOR)
    yield command
    await desk.house.limit("ann", deposit=1001)
    yield (command := replace(command, player="ann"))
    await desk.house.limit("ann")
    yield command
    yield replace(command, amount_minor=1)


async def withdraw(desk: Desk) -> Repairs:
    command = c.Withdraw("x", "nobody", "EUR", 5000)
    yield command
    await desk.house.freeze("ann")
    yield (command := replace(command, player="ann"))
    await desk.house.freeze("ann", PlayerState.ACTIVE)
    yield command
    yield replace(command, amount_minor=1)


async def adjust_balance(desk: Desk) -> Repairs:
    command = c.AdjustBalance("x", "nobody", "EUR", -5000, "a test")
    yield command
    yield (command := replace(command, player="ann"))
    yield (command := replace(command, amount_minor=BALANCE_MAX_MINOR))
    yield replace(command, amount_minor=-1)


async def buy_in(desk: Desk) -> Repairs:
    await desk.house.cash_out("bob")
    command = c.BuyIn("x", "t1", 1, "bob", "nobody", "USD", 5000, 1)
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, sitting="ann"))
    yield (command := replace(command, sitting="fresh"))
    await desk.house.freeze("ann")
    yield (command := replace(command, player="ann"))
    yield (command := replace(command, currency="EUR"))
    await desk.house.freeze("ann", PlayerState.ACTIVE)
    await desk.house.limit("ann", buy_in=405)
    yield command
    await desk.house.limit("ann")
    yield command
    yield replace(command, amount_minor=10)


async def top_up(desk: Desk) -> Repairs:
    await desk.house.cash_out("bob")
    await desk.house.forced(1, "ann cid")
    await desk.house.freeze("ann")
    command = c.TopUp("x", "t1", 1, "unknown", 5000)
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, sitting="bob"))
    yield (command := replace(command, sitting="ann"))
    await desk.house.void(1)
    yield command
    await desk.house.freeze("ann", PlayerState.ACTIVE)
    await desk.house.limit("ann", buy_in=405)
    yield command
    await desk.house.limit("ann")
    yield command
    yield replace(command, amount_minor=10)


async def cash_out(desk: Desk) -> Repairs:
    await desk.house.forced(1, "ann cid")
    command = c.CashOut("x", "t1", 1, "unknown")
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, sitting="ann"))
    await desk.house.void(1)
    yield command


async def post_forced(desk: Desk) -> Repairs:
    house = desk.house
    await house.forced(1, "ann cid", antes(ann=5, cid=5))
    await house.award(1, carry=10)
    await house.forced(2, "ann cid", carry=10)
    await house.cash_out("bob")
    await desk.close()
    dealt_in, posted = ("ann", "cid", "unknown"), (*antes(cid=5000), *antes(stranger=1))
    command = c.PostForced("x", "t1", 1, 1, dealt_in, posted, "USD", 0)
    yield command
    await desk.reopen()
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, hand=2))
    yield (command := replace(command, hand=3))
    await house.void(2)
    yield command
    yield (command := replace(command, dealt_in=("ann", "cid", "bob")))
    yield (command := replace(command, dealt_in=("ann", "cid")))
    yield (command := replace(command, postings=antes(cid=5000)))
    await house.freeze("ann")
    yield (command := replace(command, currency="EUR"))
    await house.freeze("ann", PlayerState.ACTIVE)
    yield command
    yield (command := replace(command, carry_in_minor=10))
    yield replace(command, postings=antes(cid=5))


async def collect_bets(desk: Desk) -> Repairs:
    house = desk.house
    await house.forced(1, "ann cid")
    await house.award(1)
    await house.forced(2, "ann cid")
    await house.collect(2, 1)
    command = c.CollectBets("x", "t1", 1, 1, 1, (*bets(cid=5000), *bets(bob=1)), returned(cid=5001))
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, hand=9))
    yield (command := replace(command, hand=2))
    yield (command := replace(command, round=2))
    yield (command := replace(command, bets=bets(cid=5000)))
    yield (command := replace(command, returned=returned(cid=1)))
    yield replace(command, bets=bets(cid=5))


async def award_pot(desk: Desk) -> Repairs:
    house = desk.house
    await house.forced(1, "ann cid")
    await house.void(1)
    await house.forced(2, "ann cid", antes(ann=7))
    command = c.AwardPot("x", "t1", 1, 1, wins(bob=6))
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, hand=9))
    yield (command := replace(command, hand=2))
    yield (command := replace(command, wins=(*wins(cid=6), *returned(ann=8))))
    yield (command := replace(command, wins=returned(cid=7)))
    yield replace(command, wins=wins(cid=7))


async def void_hand(desk: Desk) -> Repairs:
    await desk.house.forced(1, "ann cid")
    await desk.house.award(1)
    command = c.VoidHand("x", "t1", 1, 1, "why")
    yield command
    yield (command := replace(command, epoch=2))
    yield replace(command, hand=2)


async def refund_carry(desk: Desk) -> Repairs:
    await desk.house.forced(1, "ann cid")
    command = c.RefundCarry("x", "t1", 1)
    yield command
    yield (command := replace(command, epoch=2))
    await desk.house.void(1)
    yield command


async def fence_table(desk: Desk) -> Repairs:
    yield c.FenceTable("t1", 1)
    yield c.FenceTable("t1", 2)


async def reserve_buy_in(desk: Desk) -> Repairs:
    house = desk.house
    await house.cash_out("bob")
    await house.reserve("ann", 1, name="ended")
    await house.release("ended")
    await house.reserve("ann", 1, name="open")
    command = c.ReserveBuyIn("x", "t1", 1, "ended", "bob", "nobody", "USD", 5000, 1, 60_000)
    yield command
    yield (command := replace(command, epoch=2))
    yield (command := replace(command, reservation="open"))
    yield (command := replace(command, reservation="new"))
    yield (command := replace(command, sitting="ann"))
    yield (command := replace(command, sitting="fresh"))
    await house.freeze("ann")
    yield (command := replace(command, player="ann"))
    yield (command := replace(command, currency="EUR"))
    await house.freeze("ann", PlayerState.ACTIVE)
    await house.limit("ann", buy_in=405)
    yield command
    await house.limit("ann")
    yield command
    yield replace(command, amount_minor=10)


async def commit_reservation(desk: Desk) -> Repairs:
    """One reservation for each refusal, since an open one cannot be changed; each has all the later faults too."""
    house, other = desk.house, House(desk.house.ledger, table="t2")
    house.currency = other.currency = "USD"
    await house.deposit("ann", 100)
    house.currency = "EUR"
    for name in ("ended", "stale"):
        await other.reserve("ann", 1, name=name, sitting="left")
    await other.release("ended")
    await other.fence(2)
    # Table t2 has no currency until its first chips, which are euros.
    for name, sitting in (("left", "left"), ("taken", "sits"), ("dollars", "fresh")):
        await other.reserve("ann", 1, name=name, sitting=sitting)
    other.currency = "EUR"
    await other.reserve("ann", 1, name="frozen", sitting="late")
    await other.buy_in("cid", 1, sitting="left")
    await other.cash_out("left")
    await other.buy_in("cid", 1, sitting="sits")
    await house.freeze("ann")
    command = c.CommitReservation("x", "t2", "unknown")
    for name in ("unknown", "ended", "stale", "left", "taken", "dollars", "frozen"):
        yield replace(command, reservation=name)
    await house.freeze("ann", PlayerState.ACTIVE)
    yield replace(command, reservation="frozen")


async def release_reservation(desk: Desk) -> Repairs:
    await desk.house.reserve("ann", 10, name="done")
    await desk.house.commit("done")
    await desk.house.reserve("ann", 10, name="open", sitting="later")
    command = c.ReleaseReservation("x", "t1", "unknown")
    yield command
    yield (command := replace(command, reservation="done"))
    yield replace(command, reservation="open")


OPERATIONS = {
    "CreatePlayer": create_player,
    "Deposit": deposit,
    "Withdraw": withdraw,
    "AdjustBalance": adjust_balance,
    "BuyIn": buy_in,
    "TopUp": top_up,
    "CashOut": cash_out,
    "PostForced": post_forced,
    "CollectBets": collect_bets,
    "AwardPot": award_pot,
    "VoidHand": void_hand,
    "RefundCarry": refund_carry,
    "FenceTable": fence_table,
    "ReserveBuyIn": reserve_buy_in,
    "CommitReservation": commit_reservation,
    "ReleaseReservation": release_reservation,
}

METHODS = {
    "CreatePlayer": "create_player",
    "Deposit": "deposit",
    "Withdraw": "withdraw",
    "AdjustBalance": "adjust_balance",
    "BuyIn": "buy_in",
    "TopUp": "top_up",
    "CashOut": "cash_out",
    "PostForced": "post_forced",
    "CollectBets": "collect_bets",
    "AwardPot": "award_pot",
    "VoidHand": "void_hand",
    "RefundCarry": "refund_carry",
    "FenceTable": "fence_table",
    "ReserveBuyIn": "reserve_buy_in",
    "CommitReservation": "commit_reservation",
    "ReleaseReservation": "release_reservation",
}


@pytest.fixture
def desk(house, auditor, ledger_database) -> Desk:
    async def close():
        await ledger_database[1].write(close_ledger, "a test")

    return Desk(house, close, auditor.audit)


# The order is decided in Python, the same for both databases.
@pytest.mark.parametrize("ledger_database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_refusals_come_in_the_documented_order(desk, operation):
    order = documented()[operation]
    call = getattr(desk.house.ledger, METHODS[operation])
    found = []
    number = 0
    async for command in OPERATIONS[operation](desk):
        number += 1
        if number == 1 and "STALE_EPOCH" in order:
            # Everything the table did so far was under epoch 1; a later one is seen, and 1 is now stale.
            desk.house.epoch = 2
            await _see_epoch(desk.house, 2)
        # Refusals are stored, so each attempt has an id of its own.
        attempt = command if operation == "FenceTable" else replace(command, batch_id=f"attempt {number}")
        try:
            await call(attempt, caller="person/op")
        except Fault as fault:
            found.append(fault.reason)
        else:
            found.append("OK")
    assert found == [*order, "OK"]


async def _see_epoch(house: House, epoch: int) -> None:
    """A refused call with a newer epoch is enough for the ledger to have seen it."""
    unknown = c.CollectBets(f"see {epoch}", house.table, epoch, 999, 1, ())
    with pytest.raises(Fault):
        await house.ledger.collect_bets(unknown)


def test_every_operation_has_its_order():
    assert set(documented()) == set(OPERATIONS)


def test_codes_of_the_document_are_those_of_the_ledger():
    text = DOCUMENT.read_text()
    assert [code.name for code in TransferCode if code.name not in text] == []
