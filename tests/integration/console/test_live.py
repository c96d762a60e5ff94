"""The live list of tables before a real house: no figure before it is known, still tables found in their log."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from fivedraw.table.v1 import table_pb2
from fivedraw.table.v1 import table_service_pb2 as table_pb

from services.console import stillness, streams
from services.console.stillness import Stillness
from services.runtime.clock import SystemClock
from tests.integration.table.house import until

AHEAD_MS = 2 * 3_600_000 + 600_000


class AheadClock(SystemClock):
    """The system's clock, so much ahead of everybody's."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


async def first_piece(console, session, **options):
    async with asyncio.timeout(20), aclosing(streams._house(console, session, **options)) as pieces:
        return await anext(pieces)


async def test_the_first_figures_are_those_of_all_tables(visit, house, console, token):
    for name in ("ash", "beech", "oak"):
        await house.open_table(name)
    await house.seat("oak", "ann", "bob")
    await house.turn("oak", ["ann", "bob"])
    piece = await first_piece(console, await console.sessions.begin(token("olga", "operator")))
    assert set(piece["rows"]) == {"ash", "beech", "oak"}
    assert piece["points"]["seated"] == 2
    assert "<dt>Tables open</dt><dd>3</dd>" in piece["parts"]["figures"]
    assert "<dt>Seated</dt><dd>2</dd>" in piece["parts"]["figures"]


async def test_while_tables_are_not_all_told_it_says_so_and_nothing_else(console, token, monkeypatch):
    monkeypatch.setattr(streams, "KNOWN_SECONDS", 0.01)

    class Lobby:
        def WatchLobby(self, *_, **__):
            async def told():
                yield table_pb.WatchLobbyResponse(tables=[table_pb2.Table(name="tables/oak")])
                await asyncio.Event().wait()

            return told()

    monkeypatch.setattr(console.peers, "table", Lobby())
    piece = await first_piece(console, await console.sessions.begin(token("olga", "operator")))
    assert piece == {"lost": "the tables are not all told yet"}


async def test_the_health_of_the_cards_is_shown_to_those_who_may_see_it(visit, house, console, token):
    await house.open_table("oak")
    for role, sees in (("viewer", True), ("operator", True), ("finance", False), ("auditor", True)):
        session = await console.sessions.begin(token(f"some-{role}", role))
        figures = (await first_piece(console, session))["parts"]["figures"]
        assert ("<dt>Cards</dt><dd>healthy</dd>" in figures) == sees
        assert ("<dt>Cards</dt>" in figures) == sees
        assert "not told" not in figures
        # No page is offered either that the role is refused.
        assert ('href="/cards"' in (await (await visit("pat", role)).see("/")).text) == sees


async def test_finished_hands_are_for_operators_and_auditors(visit, house):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    hand = await house.play_hand("oak", "ann", "bob")
    await house.write_history()
    for role, status in (("viewer", 403), ("finance", 403), ("operator", 200), ("auditor", 200)):
        assert (await (await visit("pat", role)).get(f"/tables/oak/hands/{hand}")).status_code == status


async def test_a_search_finds_its_tables_live(house, console, token):
    for name in ("ash", "beech", "oak"):
        await house.open_table(name)
    session = await console.sessions.begin(token("olga", "operator"))
    piece = await first_piece(console, session, asked="ash", with_figures=False)
    assert set(piece["rows"]) == {"ash"}
    assert piece["parts"] == {"count": "1 tables"}
    assert "points" not in piece


async def test_rows_have_stakes_and_pots_in_one_unit(visit, house):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    await house.play_hand("oak", "ann", "bob")
    await until(lambda: has_a_pot(house))
    table = (await house.view("oak")).table
    for path in ("/", "/tables"):
        text = (await (await visit("olga", "operator")).see(path)).text
        assert f"<td>NL {table.options.small_blind_minor}/{table.options.big_blind_minor} CHIPS</td>" in text
        assert f'<td class="n">{table.average_pot_minor}</td>' in text


async def has_a_pot(house) -> bool:
    return (await house.view("oak")).table.average_pot_minor > 0


async def test_a_table_that_stands_still_since_long_is_found_at_the_first_look(
    visit, house, console, token, monkeypatch
):
    """Three tables are in a hand: one whose clock runs for hours, one whose clock is over, one that is paused."""
    hours = {"action_clock": {"seconds": 20 * 3600}, "cut": False}
    await house.open_table("ash", **hours)
    await house.open_table("beech", **hours)
    await house.open_table("oak", cut=False)
    for table, players in (("ash", ("ann", "bob")), ("beech", ("cid", "dan")), ("oak", ("eve", "fox"))):
        await house.seat(table, *players)
        await house.turn(table, players)
    pause = table_pb.PauseTableRequest(table="tables/beech", request_id="pause", reason="a test")
    await house.operator.PauseTable(pause)
    # Those that do not stand still are looked at again soon, so that their log is asked within the test's time.
    monkeypatch.setattr(stillness, "LOOK_AFTER_MS", 100)
    # Where nobody has a live page, the plain one looks by itself.
    object.__setattr__(console, "stillness", Stillness(AheadClock(AHEAD_MS)))
    await assert_oak_first(await visit("olga", "operator"))
    object.__setattr__(console, "stillness", Stillness(AheadClock(AHEAD_MS)))
    session = await console.sessions.begin(token("olga", "operator"))
    first: list[str] = []
    rows: dict[str, str] = {}
    async with asyncio.timeout(20), aclosing(streams._house(console, session)) as pieces:
        async for piece in pieces:
            first = piece.get("first", first)
            rows |= piece["rows"]
            if first and all("2 h" in rows.get(name, "") for name in ("ash", "oak")):
                break
    assert first == ["oak"]
    assert '<td class="stuck">2 h, seat' in rows["oak"]
    assert '<td class="still">2 h, clock runs</td>' in rows["ash"]
    assert "stuck" not in rows["beech"]
    await assert_oak_first(await visit("olga", "operator"))


async def assert_oak_first(visitor) -> None:
    for path in ("/", "/tables"):
        text = (await visitor.see(path)).text
        assert text.index('id="row-oak"') < text.index('id="row-ash"') < text.index('id="row-beech"')
    assert "1 of them stands still in a hand" in text
