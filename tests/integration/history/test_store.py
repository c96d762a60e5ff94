"""Rows on SQLite and PostgreSQL: written once, listed by a bounded walk, deleted with all that belongs to them."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from fivedraw.history.v1 import record_pb2

from services.history import names, queries, store
from services.history.names import HandKey, hand_id
from services.history.queries import Filters
from services.history.record import encode, record_of_ledger
from services.history.schema import HAND_PLAYERS, HAND_RECORDS, HANDS, METADATA
from services.history.store import NewHand, Written
from services.history.summary import PlayerSummary, Summary, summarise
from services.history.together import Together
from services.runtime.errors import Fault
from tests.unit.history.played import play


def _summary(number: int, *, table: str = "red", end_ms: int = 1000, **changes) -> Summary:
    made = Summary(
        key=HandKey(table, number),
        epoch=1,
        rulebook="house",
        currency="USD",
        start_ms=end_ms - 10,
        end_ms=end_ms,
        outcome=1,
        pot_minor=100,
        players=[
            PlayerSummary("players/a", 1, net_minor=40, won_minor=100),
            PlayerSummary("players/b", 2, net_minor=-40),
        ],
    )
    return replace(made, **changes)


async def test_a_hand_is_written_once_and_the_first_stays(database) -> None:
    opened = await database("history")
    played = play(random.Random(1))
    summary = summarise(played.key, played.record)
    assert await opened.write(store.insert_hand, summary, encode(played.record), 5) is Written.NEW
    assert await opened.write(store.insert_hand, summary, b"other", 6) is Written.UNCHANGED
    stored = await opened.read(store.read_hand, played.key)
    assert stored.record == encode(played.record)
    assert stored.hand_id == hand_id(played.key)
    assert await opened.read(store.read_hand, stored.hand_id) == stored


async def test_many_workers_write_one_hand_once(database) -> None:
    opened = await database("history", isolation="READ COMMITTED")
    outcomes = await asyncio.gather(
        *(opened.write(store.insert_hand, _summary(number % 3 + 1), b"r", number) for number in range(24))
    )
    assert outcomes.count(Written.NEW) == 3
    assert outcomes.count(Written.UNCHANGED) == 21
    assert await opened.read(store.count_hands) == 3


async def test_hands_written_together_are_each_told_what_became_of_them(database, monkeypatch) -> None:
    opened = await database("history", isolation="READ COMMITTED")
    real = store.hand_id
    monkeypatch.setattr(
        store, "hand_id", lambda key, attempt=0: 7 if key.hand in (5, 6) and not attempt else real(key, attempt)
    )
    await opened.write(store.insert_hand, _summary(2), b"first", 1)
    # A new one, one that is there, the new one doubled, and two that would have the same number.
    together = [NewHand(_summary(number), b"r", 1) for number in (1, 2, 1, 5, 6)]
    outcomes = await opened.write(store.insert_hands, together)
    assert outcomes == [Written.NEW, Written.UNCHANGED, Written.UNCHANGED, Written.NEW, Written.NEW]
    assert await opened.read(store.count_hands) == 4
    assert (await opened.read(store.read_hand, HandKey("red", 2))).record == b"first"
    assert (await opened.read(store.read_hand, HandKey("red", 6))).hand_id == real(HandKey("red", 6), 1)
    assert await opened.write(store.insert_hands, []) == []


async def test_one_hand_that_cannot_be_written_does_not_keep_others_from_it(database, monkeypatch) -> None:
    opened = await database("history", isolation="READ COMMITTED")
    real = store.hand_id
    monkeypatch.setattr(store, "hand_id", lambda key, attempt=0: 7 if key.hand in (3, 4) else real(key, attempt))
    together = Together(opened)
    outcomes = await asyncio.gather(
        *(together.write(NewHand(_summary(number), b"r", 1)) for number in range(1, 9)), return_exceptions=True
    )
    assert sum(isinstance(outcome, store.HandIdsExhaustedError) for outcome in outcomes) == 1
    assert outcomes.count(Written.NEW) == 7
    assert await opened.read(store.count_hands) == 7


async def test_a_hand_whose_number_is_taken_gets_its_next_one(database, monkeypatch) -> None:
    opened = await database("history")
    first, second = _summary(1), _summary(2)

    def colliding(key: HandKey, attempt: int = 0) -> int:
        return 7 if attempt == 0 else hand_id(key, attempt)

    monkeypatch.setattr(store, "hand_id", colliding)
    assert await opened.write(store.insert_hand, first, b"1", 1) is Written.NEW
    assert await opened.write(store.insert_hand, second, b"2", 1) is Written.NEW
    assert (await opened.read(store.read_hand, first.key)).hand_id == 7
    assert (await opened.read(store.read_hand, second.key)).hand_id == names.hand_id(second.key, 1)


async def test_numbers_that_are_all_taken_write_nothing(database, monkeypatch) -> None:
    opened = await database("history")
    monkeypatch.setattr(store, "hand_id", lambda key, attempt=0: 7)
    await opened.write(store.insert_hand, _summary(1), b"1", 1)
    with pytest.raises(store.HandIdsExhaustedError):
        await opened.write(store.insert_hand, _summary(2), b"2", 1)
    assert await opened.read(store.count_hands) == 1


async def test_a_whole_hand_takes_the_place_of_an_incomplete_one_and_keeps_its_number(database) -> None:
    opened = await database("history")
    played = play(random.Random(2), hand=5)
    seats = [record_pb2.LedgerSeat(player="players/p1", paid_minor=10, won_minor=10)]
    ledger = record_pb2.LedgerHand(hand=5, epoch=1, seats=seats)
    ledger.open_time.FromMilliseconds(1000)
    ledger.close_time.FromMilliseconds(2000)
    incomplete = record_of_ledger(played.table, ledger)
    summary = summarise(played.key, incomplete)
    assert summary.incomplete
    assert await opened.write(store.insert_hand, summary, encode(incomplete), 1) is Written.NEW
    assert await opened.read(store.hand_is_written, played.key)
    before = await opened.read(store.read_hand, played.key)
    whole = summarise(played.key, played.record)
    assert await opened.write(store.insert_hand, whole, encode(played.record), 2) is Written.COMPLETED
    assert await opened.write(store.insert_hand, summary, encode(incomplete), 3) is Written.UNCHANGED
    after = await opened.read(store.read_hand, played.key)
    assert after.hand_id == before.hand_id
    players = await opened.read(lambda conn: conn.execute(sa.select(HAND_PLAYERS.c.player)).scalars().all())
    assert sorted(players) == sorted(player.player for player in whole.players)


async def test_retention_deletes_oldest_first_and_leaves_nothing_behind(database) -> None:
    opened = await database("history")
    for number in range(1, 8):
        played = play(random.Random(number), hand=number, start_ms=number * 1_000_000)
        await opened.write(store.insert_hand, summarise(played.key, played.record), encode(played.record), 1)
    assert await opened.write(store.delete_before, 4_000_000, 2) == 2
    assert await opened.read(store.numbers_written, "red", 0, 7) == {3, 4, 5, 6, 7}
    assert await opened.write(store.delete_before, 4_000_000) == 1

    def left(conn: sa.Connection) -> tuple[int, int, set[int]]:
        records = conn.execute(sa.select(sa.func.count()).select_from(HAND_RECORDS)).scalar_one()
        hands = conn.execute(sa.select(sa.func.count()).select_from(HANDS)).scalar_one()
        return hands, records, set(conn.execute(sa.select(HAND_PLAYERS.c.hand)).scalars())

    assert await opened.read(left) == (4, 4, {4, 5, 6, 7})


async def _walk(opened, filters: Filters, size: int, *, oldest_first: bool = False) -> list[int]:
    found: list[int] = []
    place = None
    for _ in range(1000):
        page = await opened.read(queries.list_hands, filters, place, size, oldest_first=oldest_first)
        assert len(page.hands) <= size
        found += [hand.key.hand for hand in page.hands]
        if page.next is None:
            return found
        place = page.next
    raise AssertionError("the walk does not end")


@pytest.mark.parametrize("oldest_first", [False, True])
async def test_every_filter_finds_what_a_plain_search_finds(database, monkeypatch, oldest_first) -> None:
    monkeypatch.setattr(queries, "SCAN_MAX", 7)
    opened = await database("history")
    rng = random.Random(3)
    made = [
        _summary(
            number,
            table=rng.choice(["red", "blue"]),
            rulebook=rng.choice(["house", "clocked"]),
            # Several hands end in the same millisecond; none may be lost between two pages.
            end_ms=rng.randint(1000, 1020),
            pot_minor=rng.randint(0, 500),
            players=[PlayerSummary(f"players/{name}", 1) for name in rng.sample("abcd", 2)],
        )
        for number in range(1, 60)
    ]
    for summary in made:
        await opened.write(store.insert_hand, summary, b"r", 1)
    ordered = sorted(made, key=lambda each: (each.end_ms, hand_id(each.key)), reverse=not oldest_first)
    for filters in (
        Filters(),
        Filters(table_id="red"),
        Filters(rulebook="clocked"),
        Filters(player="players/a"),
        Filters(player="players/b", table_id="blue"),
        Filters(player="players/b", table_id="blue", rulebook="house"),
        Filters(table_id="red", rulebook="house", min_pot_minor=200),
        Filters(from_ms=1005, to_ms=1010),
        Filters(max_pot_minor=50),
        Filters(player="players/nobody"),
    ):
        expected = [each.key.hand for each in ordered if _fits(each, filters)]
        for size in (2, 50):
            assert await _walk(opened, filters, size, oldest_first=oldest_first) == expected, filters


def _fits(summary: Summary, filters: Filters) -> bool:
    return (
        (not filters.table_id or summary.key.table_id == filters.table_id)
        and (not filters.rulebook or summary.rulebook == filters.rulebook)
        and (not filters.player or filters.player in [each.player for each in summary.players])
        and (not filters.from_ms or summary.end_ms >= filters.from_ms)
        and (not filters.to_ms or summary.end_ms < filters.to_ms)
        and summary.pot_minor >= filters.min_pot_minor
        and (not filters.max_pot_minor or summary.pot_minor <= filters.max_pot_minor)
    )


async def test_statistics_are_those_counted_by_hand(database) -> None:
    opened = await database("history")
    hands = [
        PlayerSummary("players/a", 1, net_minor=30, won_minor=60, voluntary=True, showdown=True),
        PlayerSummary("players/a", 1, net_minor=-20, voluntary=True, showdown=True),
        PlayerSummary("players/a", 1, net_minor=10, won_minor=20),
        PlayerSummary("players/a", 1, net_minor=-5),
    ]
    for number, player in enumerate(hands, 1):
        await opened.write(store.insert_hand, _summary(number, end_ms=number * 100, players=[player]), b"r", 1)
    void = _summary(9, outcome=4, end_ms=900, players=[PlayerSummary("players/a", 1)])
    await opened.write(store.insert_hand, void, b"r", 1)
    (found,) = await opened.read(queries.player_statistics, "players/a", 0, 0)
    assert (found.hands, found.voluntary, found.showdowns, found.won_at_showdown, found.won) == (4, 2, 2, 1, 2)
    assert found.net_minor == 15
    (later,) = await opened.read(queries.player_statistics, "players/a", 200, 400)
    assert (later.hands, later.net_minor) == (2, -10)
    assert await opened.read(queries.player_statistics, "players/z", 0, 0) == []


async def test_the_migrations_make_the_tables_that_the_code_uses(database) -> None:
    opened = await database("history")

    def differences(conn: sa.Connection) -> list[object]:
        options = {
            "include_object": lambda _object, name, kind, *_: not (kind == "table" and name.startswith("alembic")),
            "compare_type": True,
        }
        return compare_metadata(MigrationContext.configure(conn, opts=options), METADATA)

    assert await opened.read(differences) == []


def test_a_page_token_is_of_its_filters_alone() -> None:
    place = queries.Place(123, 456)
    token = queries.place_token(Filters(table_id="red"), place)
    assert queries.parse_place(Filters(table_id="red"), token) == place
    for wrong in (token + "A", "", "!!", "AAAA", "x" * 300, "é"):
        if wrong:
            with pytest.raises(Fault, match="page_token"):
                queries.parse_place(Filters(table_id="red"), wrong)
    with pytest.raises(Fault, match="page_token"):
        queries.parse_place(Filters(table_id="blue"), token)
