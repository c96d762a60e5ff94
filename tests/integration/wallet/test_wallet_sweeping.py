"""Hot accounts: sub-accounts are swept into their heads by a batch of its own, once an interval, to the last unit."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Connection, select

from services.runtime.database import Database
from services.runtime.telemetry import REGISTRY_OF_PROCESS
from services.wallet import chart
from services.wallet.books import AccountRow, Books
from services.wallet.chart import AccountKind
from services.wallet.commands import SweepHouse, Swept
from services.wallet.house_desk import sweep_house
from services.wallet.ledger import Ledger
from services.wallet.schema import accounts
from services.wallet.sweeping import Sweeper
from tests.integration.wallet.house import House
from tests.standing_clock import StandingClock


def hot(conn: Connection) -> dict[str, int]:
    found = conn.execute(select(accounts.c.account, accounts.c.balance).where(accounts.c.kind.in_((5, 6))))
    return {account: balance for account, balance in found}  # noqa: C416 - rows are no pairs to the types


@pytest.fixture
async def two_writers(ledger_database):
    """A house whose rake and cashier have chips in the sub-accounts 0 and 1, and a sweeper on a clock of its own."""
    database: Database = ledger_database[1]
    clock = StandingClock()
    ledgers = [Ledger(database, clock, shard=shard) for shard in (0, 1)]
    first, second = House(ledgers[0]), House(ledgers[1], first_id=1_000)
    await first.open("ann", "bob")
    for hand, house in ((1, first), (2, second)):
        await house.play(hand)
    await second.withdraw("ann", 300)
    yield database, first, clock, [Sweeper(database, ledger, clock) for ledger in ledgers]
    for ledger in ledgers:
        await ledger.close()


async def test_a_sweep_leaves_everything_in_the_heads(two_writers, auditor):
    database, house, _, (sweeper, _) = two_writers
    # 2,000 were deposited through sub-account 0, 300 withdrawn through 1; each hand paid a rake of 1.
    assert await database.read(hot) == {"cashier/EUR/0": -2000, "cashier/EUR/1": 300, "rake/EUR/0": 1, "rake/EUR/1": 1}
    before = (await house.ledger.get_ledger_summary()).totals
    assert await sweeper.sweep() == (Swept(rake_minor=2, cashier_minor=2300),)
    assert await database.read(hot) == {
        "cashier/EUR/0": 0,
        "cashier/EUR/1": 0,
        "cashier/EUR/head": -1700,
        "rake/EUR/0": 0,
        "rake/EUR/1": 0,
        "rake/EUR/head": 2,
    }
    after = (await house.ledger.get_ledger_summary()).totals
    assert [(each.kind, each.amount_minor) for each in after] == [(each.kind, each.amount_minor) for each in before]
    await auditor.seal()
    assert (await auditor.audit()).faults == ()


async def test_in_one_interval_a_currency_is_swept_once_whoever_sweeps(two_writers):
    database, house, clock, sweepers = two_writers
    swept = await asyncio.gather(*(sweeper.sweep() for sweeper in sweepers))
    # Whoever came second found nothing to sweep, or was given the first one's answer.
    assert {Swept(2, 2300)} <= {each for found in swept for each in found}
    await house.play(3)
    assert await sweepers[0].sweep() == (Swept(2, 2300),)
    assert (await database.read(hot))["rake/EUR/0"] == 1
    clock.advance(60)
    assert await sweepers[1].sweep() == (Swept(1, 0),)
    assert (await database.read(hot))["rake/EUR/head"] == 3
    clock.advance(60)
    assert await sweepers[0].sweep() == ()


async def test_the_house_plays_on_while_it_is_swept(two_writers, auditor):
    _, house, clock, (sweeper, _) = two_writers

    async def sweep_often() -> None:
        for _ in range(6):
            clock.advance(60)
            await sweeper.sweep()

    async def play() -> None:
        for hand in range(3, 12):
            await house.play(hand)

    await asyncio.gather(sweep_often(), play())
    clock.advance(60)
    await sweeper.sweep()
    summary = await house.ledger.get_ledger_summary()
    assert {each.kind.name: each.amount_minor for each in summary.totals}["RAKE"] == 11
    assert [each.amount_minor for each in summary.imbalance] == [0]
    await auditor.seal()
    assert (await auditor.audit()).faults == ()


async def test_a_sweep_tells_what_it_found_as_a_metric(two_writers):
    _, _, _, (sweeper, _) = two_writers
    await sweeper.sweep()

    def unswept(kind: str) -> float | None:
        labels = {"kind": kind, "currency": "EUR"}
        return REGISTRY_OF_PROCESS.get_sample_value("fivedraw_wallet_unswept_minor", labels)

    assert (unswept("rake"), unswept("cashier")) == (2, 2300)


def test_the_head_of_the_cashier_takes_in_no_more_than_fits():
    """What all have issued together must fit one balance, or a credit could fail."""
    books = Books(now_ms=1, shard=0)
    most, head = chart.ISSUED_PER_SHARD_MAX_MINOR, chart.cashier_account("EUR", chart.HEAD)
    held = {chart.cashier_account("EUR", shard): -most for shard in range(3)}
    held |= {chart.cashier_account("EUR", 3): 5, head: -(chart.ISSUED_BY_HEAD_MAX_MINOR - most - 10)}
    for account, balance in held.items():
        books.accounts[account] = AccountRow(account, AccountKind.CASHIER, "house", "EUR", balance, 1)
    assert sweep_house(books, SweepHouse("b", "EUR")) == Swept(0, 5 + most + 15)
    assert books.balance(head) == -chart.ISSUED_BY_HEAD_MAX_MINOR
    assert sum(row.balance for row in books.accounts.values()) == sum(held.values())
    assert chart.ISSUED_BY_HEAD_MAX_MINOR + chart.SHARDS * most <= chart.BALANCE_MAX_MINOR
