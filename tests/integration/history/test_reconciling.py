"""Hands whose log was lost get a row from the ledger: every number, once, and nothing that may still come whole."""

from __future__ import annotations

import random

import pytest
import pytest_asyncio
from fivedraw.history.v1 import record_pb2
from fivedraw.table.v1 import table_pb2

from services.history import reconciling, store
from services.history.names import HandKey
from services.history.reconciling import NEVER_SEEN, Reconciler
from services.history.record import decode
from services.history.settings import HistorySettings
from services.history.viewing import NoKeys, Viewer, view
from services.history.writing import FinishedHand, HandWriter
from services.runtime.errors import Fault
from tests.unit.history.played import play, table_of

NOW_MS = 1_800_000_000_000
LONG_AGO_MS = NOW_MS - 3_600_000
AFTER_SECONDS = 120


class FixedClock:
    def now_ms(self) -> int:
        return NOW_MS


class Tables:
    """The tables of a house: `hands` is the number that each gave out last."""

    def __init__(self) -> None:
        self.hands: dict[str, int] = {}
        self.asked: list[str] = []
        self.size = 200

    async def page(self, token: str) -> tuple[list[table_pb2.Table], str]:
        self.asked.append(token)
        names = sorted(name for name in self.hands if name > token)[: self.size]
        made = [table_of(play(random.Random(1)).book, f"tables/{name}") for name in names]
        for name, table in zip(names, made, strict=True):
            table.hand = self.hands[name]
        return made, names[-1] if len(names) == self.size else ""


class Ledger:
    def __init__(self) -> None:
        self.hands: dict[HandKey, record_pb2.LedgerHand] = {}
        self.asked: list[HandKey] = []
        self.away = False

    async def read(self, key: HandKey) -> record_pb2.LedgerHand | None:
        self.asked.append(key)
        if self.away:
            raise Fault("SERVICE_UNAVAILABLE", "the wallet is away")
        return self.hands.get(key)

    def add(self, number: int, *, table: str = "red", closed_ms: int = LONG_AGO_MS, void: bool = False) -> None:
        hand = record_pb2.LedgerHand(hand=number, epoch=3, void=void, reason="lost" if void else "", rake_minor=2)
        hand.seats.add(seat=1, player="players/a", paid_minor=40, sitting="s1")
        hand.seats.add(seat=2, player="players/b", paid_minor=40, won_minor=0 if void else 78, sitting="s2")
        if void:
            hand.rake_minor = 0
        hand.open_time.FromMilliseconds(LONG_AGO_MS)
        if closed_ms:
            hand.close_time.FromMilliseconds(closed_ms)
        self.hands[HandKey(table, number)] = hand


class Log:
    def __init__(self) -> None:
        self.logs: dict[FinishedHand, object] = {}
        self.confirmed: list[FinishedHand] = []

    async def read(self, hand: FinishedHand):
        return self.logs.get(hand)

    async def confirm(self, hand: FinishedHand) -> None:
        self.confirmed.append(hand)


@pytest_asyncio.fixture
async def house(database):
    opened = await database("history", isolation="READ COMMITTED")

    class House:
        db = opened
        tables, ledger, log = Tables(), Ledger(), Log()

        @classmethod
        def reconciler(cls, **settings) -> Reconciler:
            writer = HandWriter(opened, cls.log, FixedClock(), cls.ledger)
            chosen = HistorySettings(history_reconcile_after_seconds=AFTER_SECONDS, **settings)
            return Reconciler(opened, cls.tables, cls.ledger, writer, clock=FixedClock(), settings=chosen)

        @staticmethod
        async def rows(table: str = "red", last: int = 1000) -> set[int]:
            return await opened.read(store.numbers_written, table, 0, last)

        @staticmethod
        async def hand(number: int, table: str = "red"):
            stored = await opened.read(store.read_hand, HandKey(table, number))
            return view(stored.key, stored.hand_id, decode(stored.record), Viewer(), NoKeys())

    return House


async def test_a_hand_without_a_log_is_written_from_the_ledger_as_incomplete(house) -> None:
    house.tables.hands["red"] = 3
    house.ledger.add(1)
    house.ledger.add(2, void=True)
    house.ledger.add(3, closed_ms=0)
    assert await house.reconciler().round() == 2
    paid, void = await house.hand(1), await house.hand(2)
    assert (paid.incomplete, paid.rake_minor, dict(paid.pots[0].winners)) == (True, 2, {2: 78})
    assert paid.pots[0].amount_minor == 80
    assert [(seat.seat, seat.player) for seat in paid.seats] == [(1, "players/a"), (2, "players/b")]
    assert paid.end_time.ToMilliseconds() == LONG_AGO_MS
    assert (void.incomplete, void.outcome, void.void_reason) == (True, table_pb2.HAND_OUTCOME_VOID, "lost")
    assert await house.rows() == {1, 2}, "the third is still being played"


async def test_a_number_that_the_ledger_never_saw_is_a_void_row_once_a_later_hand_has_begun(house) -> None:
    house.tables.hands["red"] = 1
    reconciler = house.reconciler()
    for _ in range(3):
        assert await reconciler.round() == 0, "it may be about to begin"
    house.tables.hands["red"] = 2
    house.ledger.add(2)
    assert await reconciler.round() >= 1
    lost = await house.hand(1)
    assert (lost.incomplete, lost.outcome, lost.void_reason) == (True, table_pb2.HAND_OUTCOME_VOID, NEVER_SEEN)
    assert not lost.seats


async def test_what_is_being_played_is_not_asked_for_until_it_has_stood_still(house) -> None:
    house.tables.hands["red"] = 1
    reconciler = house.reconciler()
    await reconciler.round()
    assert house.ledger.asked == []
    house.ledger.add(1)
    assert await reconciler.round() == 1, "the last hand of a table that stands still is settled too"
    asked = len(house.ledger.asked)
    assert await reconciler.round() == 0
    assert len(house.ledger.asked) == asked, "a settled table costs nothing more"


async def test_a_hand_that_has_just_closed_is_left_to_its_task(house) -> None:
    house.tables.hands["red"] = 2
    house.ledger.add(1, closed_ms=NOW_MS - AFTER_SECONDS * 1000 + 1)
    assert await house.reconciler().round() == 0
    house.ledger.add(1, closed_ms=NOW_MS - AFTER_SECONDS * 1000)
    assert await house.reconciler().round() == 1


async def test_a_log_that_is_there_after_all_makes_the_whole_hand(house) -> None:
    played = play(random.Random(4), hand=1)
    house.log.logs[FinishedHand("tables/red", 3, 1)] = played.hand_log
    house.tables.hands["red"] = 2
    house.ledger.add(1)
    assert await house.reconciler().round() == 1
    assert not (await house.hand(1)).incomplete
    assert house.log.confirmed == [FinishedHand("tables/red", 3, 1)]


async def test_a_cut_log_is_made_up_for_and_its_hand_is_no_longer_due(house) -> None:
    played = play(random.Random(4), hand=1)
    del played.log.events[:3]
    finished = FinishedHand("tables/red", 3, 1)
    house.log.logs[finished] = played.hand_log
    house.ledger.add(1)
    writer = HandWriter(house.db, house.log, FixedClock(), house.ledger)
    assert (await writer.write_hand(finished)).value == "new"
    assert (await house.hand(1)).incomplete
    assert house.log.confirmed == [finished]


async def test_one_hand_that_cannot_be_written_keeps_no_other_from_it(house) -> None:
    house.tables.hands["red"] = 4
    for number in (1, 2, 3, 4):
        house.ledger.add(number)
    # More won than was paid: no sum that a row could have.
    house.ledger.hands[HandKey("red", 2)].seats[1].won_minor = 500
    reconciler = house.reconciler()
    await reconciler.round()
    await reconciler.round()
    assert await house.rows() == {1, 3, 4}
    assert await house.db.read(store.reconciled, ["red"]) == {"red": 1}, "it is looked at again"


async def test_a_round_is_bounded_and_the_next_one_goes_on(house, monkeypatch) -> None:
    monkeypatch.setattr(reconciling, "ASKED_MAX", 7)
    monkeypatch.setattr(reconciling, "NUMBERS_OF_A_TABLE_MAX", 5)
    house.tables.size = 2
    for table in ("a", "b", "c", "d", "e"):
        house.tables.hands[table] = 9
        for number in range(1, 10):
            house.ledger.add(number, table=table)
    reconciler = house.reconciler()
    rounds = 0
    while sum([len(await house.rows(table)) for table in house.tables.hands]) < 45:
        before = len(house.ledger.asked)
        await reconciler.round()
        assert len(house.ledger.asked) - before <= 7
        rounds += 1
        assert rounds < 40, "it never ends"
    assert rounds >= 45 // 7


async def test_hands_that_cannot_be_written_do_not_hold_up_other_tables(house, monkeypatch) -> None:
    monkeypatch.setattr(reconciling, "ASKED_MAX", 3)
    house.tables.size = 1
    for table in ("a", "b"):
        house.tables.hands[table] = 5
        for number in range(1, 6):
            house.ledger.add(number, table=table, closed_ms=NOW_MS if table == "a" else LONG_AGO_MS)
    reconciler = house.reconciler()
    for _ in range(6):
        await reconciler.round()
    assert await house.rows("a") == set()
    assert {1, 2, 3, 4} <= await house.rows("b")


async def test_hands_past_their_retention_are_passed_over(house) -> None:
    house.tables.hands["red"] = 3
    for number in (1, 2, 3):
        house.ledger.add(number, closed_ms=NOW_MS - 3 * 24 * 3_600_000 if number == 1 else LONG_AGO_MS)
    reconciler = house.reconciler(history_retention_days=2)
    await reconciler.round()
    await reconciler.round()
    assert await house.rows() == {2, 3}
    assert await house.db.read(store.reconciled, ["red"]) == {"red": 3}


async def test_a_ledger_that_is_away_costs_a_round(house) -> None:
    house.tables.hands["red"] = 2
    house.ledger.add(1)
    reconciler = house.reconciler()
    house.ledger.away = True
    assert await reconciler.round() == 0
    house.ledger.away = False
    assert await reconciler.round() == 1


@pytest.mark.parametrize("twice", [False, True])
async def test_two_workers_write_one_row(house, twice: bool) -> None:
    house.tables.hands["red"] = 3
    for number in (1, 2):
        house.ledger.add(number)
    first, second = house.reconciler(), house.reconciler()
    await first.round()
    if twice:
        await house.db.write(store.mark_reconciled, {"red": 0})
    await second.round()
    assert await house.rows() == {1, 2}
