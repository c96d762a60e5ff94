"""Many callers at once: shared commits, bounded queues, two processes on one database."""

from __future__ import annotations

import asyncio
import threading

import pytest

from services.runtime.clock import SystemClock
from services.runtime.database import Database, DatabaseBusyError
from services.wallet import chain
from services.wallet import commands as c
from services.wallet.auditing import Auditor
from services.wallet.chart import BALANCE_MAX_MINOR, ISSUED_PER_SHARD_MAX_MINOR
from services.wallet.ledger import Ledger
from tests.integration.wallet.conftest import empty
from tests.integration.wallet.house import House, antes, refused


async def test_past_the_queues_limit_a_call_is_refused_at_once(open_ledger):
    ledger = await open_ledger(queue_max=3, group_max=2)
    house = House(ledger)
    await house.register("ann")
    outcomes = await asyncio.gather(*(house.deposit("ann", 1) for _ in range(5)), return_exceptions=True)
    reasons = [getattr(outcome, "reason", "OK") for outcome in outcomes]
    assert reasons == ["OK", "OK", "OK", "QUEUE_FULL", "QUEUE_FULL"]
    assert await house.cash("ann") == 1003


async def test_one_id_sent_many_times_at_once_through_two_processes_acts_once(open_ledger):
    first, second = House(await open_ledger(shard=0)), House(await open_ledger(shard=1))
    await first.register("ann")
    answers = await asyncio.gather(*(house.deposit("ann", 5, id="same") for house in (first, second) * 10))
    assert {answer.amount_minor for answer in answers} == {1005}
    assert await second.cash("ann") == 1005


async def test_two_processes_keep_one_table_in_order(open_ledger):
    """Both send the same steps of the same hands, as two table replicas may; every chip moves once."""
    first, second = House(await open_ledger(shard=0)), House(await open_ledger(shard=1))
    await first.open("ann", "bob")

    async def play(house: House) -> None:
        for hand in range(1, 11):
            step = c.SittingAmount("ann", 3, 6), c.SittingAmount("bob", 3, 6)
            await house.forced(hand, "ann bob", step, id=f"f{hand}")
            await house.collect(hand, 1, id=f"c{hand}")
            await house.award(hand, [c.SittingAmount("ann", 5, 9)], rake=1, id=f"a{hand}")

    await asyncio.gather(play(first), play(second))
    assert await first.stacks() == {"ann": 420, "bob": 370}
    summary = await second.ledger.get_ledger_summary()
    assert summary.imbalance == (c.Balance("EUR", 0),)


async def test_two_processes_at_many_tables_and_the_same_cash(open_ledger, auditor):
    houses = [House(await open_ledger(shard=shard), table=f"t{shard}") for shard in range(2)]
    await houses[0].register("ann", 10_000)
    await houses[0].register("bob", 10_000)

    async def churn(house: House, player: str, name: str) -> None:
        for round_no in range(5):
            sitting = f"{name}-{round_no}"
            await house.buy_in(player, 100, sitting=sitting)
            await house.cash_out(sitting)

    await asyncio.gather(
        *(
            churn(house, player, f"{house.table}{player}{n}")
            for house in houses
            for player in ("ann", "bob")
            for n in "xy"
        )
    )
    assert [await houses[0].cash(player) for player in ("ann", "bob")] == [10_000, 10_000]
    await auditor.seal()
    assert (await auditor.audit()).faults == ()


async def test_a_caller_that_gives_up_while_waiting_withdraws_its_batch(house, ledger):
    tasks = [asyncio.create_task(house.deposit("ann", 1)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await ledger.close()
    assert await house.cash("ann") == 602


async def test_no_account_leaves_int64_and_no_credit_can_fail_later(house):
    await refused(house.deposit("ann", BALANCE_MAX_MINOR), "BALANCE_OVERFLOW")
    await refused(house.deposit("ann", ISSUED_PER_SHARD_MAX_MINOR - 2999), "BALANCE_OVERFLOW")
    before = await house.cash("ann")
    balance = await house.deposit("ann", ISSUED_PER_SHARD_MAX_MINOR - 3000)
    assert balance.amount_minor == before + ISSUED_PER_SHARD_MAX_MINOR - 3000
    await refused(house.deposit("bob", 1), "BALANCE_OVERFLOW")
    await house.top_up("ann", balance.amount_minor)
    assert (await house.cash_out("ann")).amount_minor == balance.amount_minor + 400
    summary = await house.ledger.get_ledger_summary()
    assert summary.imbalance == (c.Balance("EUR", 0),)


async def test_a_refused_batch_opens_no_account(house):
    house.currency = "JPY"
    await refused(house.deposit("ann", BALANCE_MAX_MINOR), "BALANCE_OVERFLOW")
    await refused(house.withdraw("ann", 1), "INSUFFICIENT_FUNDS")
    balances = await house.ledger.get_balances("ann")
    assert [balance.currency for balance in balances.cash] == ["EUR"]


class Held:
    """A failpoint that holds a commit at one point until it is let go, or for some seconds."""

    def __init__(self, point: str, seconds: float) -> None:
        self.reached = threading.Event()
        self.let_go = threading.Event()
        self.armed = False
        self._point = point
        self._seconds = seconds

    def __call__(self, point: str) -> None:
        if self.armed and point == self._point:
            self.reached.set()
            self.let_go.wait(self._seconds)


async def test_a_refund_and_a_deposit_to_the_same_cash_ascend_as_they_commit(open_ledger, auditor):
    """The refund locks its payers late, when their cash may have moved under numbers above its own."""
    held = Held("loaded", 0.5)
    house, other = House(await open_ledger(failpoint=held)), House(await open_ledger(shard=1), first_id=100)
    await house.open("ann", "bob")
    await house.forced(1, "ann bob", antes(ann=10, bob=10))
    await house.award(1, (), carry=20)
    held.armed = True
    refund = asyncio.create_task(house.refund_carry())
    await asyncio.to_thread(held.reached.wait)
    await other.deposit("ann", 500)
    held.let_go.set()
    assert (await refund).amount_minor == 20
    assert await house.cash("ann") == 600 + 500 + 10
    await auditor.seal()
    assert (await auditor.audit()).faults == ()


async def test_a_commit_that_hangs_puts_a_seal_off_and_stops_nobody(postgres_ledger, monkeypatch):
    monkeypatch.setattr(chain, "WRITERS_MS_MAX", 50)
    url, database = postgres_ledger
    await database.write(empty)
    held = Held("loaded", 30.0)
    connections = [Database(url, isolation="READ COMMITTED", pool_size=4) for _ in range(2)]
    hung = Ledger(connections[0], SystemClock(), failpoint=held)
    house, other = House(hung), House(Ledger(connections[1], SystemClock(), shard=1), table="t2")
    await house.open("ann")
    await other.open("bob")
    auditor = Auditor(database, SystemClock())
    held.armed = True
    stuck = asyncio.create_task(house.top_up("ann", 1))
    await asyncio.to_thread(held.reached.wait)
    with pytest.raises(DatabaseBusyError):
        await auditor.seal()
    assert (await other.top_up("bob", 1)).stack_minor == 401
    held.let_go.set()
    assert (await stuck).stack_minor == 401
    await auditor.seal()
    assert (await auditor.audit()).faults == ()
    for ledger, connection in ((hung, connections[0]), (other.ledger, connections[1])):
        await ledger.close()
        await connection.close()
