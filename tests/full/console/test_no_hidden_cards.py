"""No hidden card in any byte that the console sends a browser, over a whole run, to whichever role."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack

import httpx
import pytest

from tests.embedded import EmbeddedHouse, bot_tables, embedded_house
from tests.full.console.card_watch import CardWatch, cards_in

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

ROLES = ("viewer", "operator", "finance", "auditor")
TABLES = 3
PLAYERS = 4
HANDS = 40
ROUNDS_MIN = 3
RUN_SECONDS = 240
HANDS_OF_A_PAGE = 3
PAGES = ("/", "/tables", "/ledger", "/cards", "/processes", "/approvals", "/audit-log", "/no-such-page")


class Browser:
    """One role's browser: it reads all streams at once, and all pages again and again."""

    def __init__(self, role: str, house: EmbeddedHouse, watch: CardWatch) -> None:
        self.role = role
        self.rounds = 0
        self._watch = watch
        self._token = house.keys().mint(f"some-{role}", role)
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{house.port_base + 21}", timeout=60)
        self._replayed: set[str] = set()

    async def sign_in(self) -> None:
        answer = await self._http.post("/sign-in", data={"token": self._token})
        assert answer.status_code == 303

    async def close(self) -> None:
        await self._http.aclose()

    async def follow_overview(self) -> None:
        async with self._http.stream("GET", "/live") as answer:
            self._watch.page(f"{self.role} /live", str(answer.headers))
            async for line in answer.aiter_lines():
                # JSON may hide a sign behind its escape.
                self._watch.page(f"{self.role} /live", line.encode().decode("unicode_escape"))

    async def follow(self, table: str) -> None:
        where = f"{self.role} /{table}/live"
        async with self._http.stream("GET", f"/{table}/live") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    self._watch.piece(where, table, line.removeprefix("data: "))
                else:
                    self._watch.page(where, line)

    async def read_all(self) -> None:
        """Every page once: those of the tables, their newest finished hands, and their players too."""
        for path in PAGES:
            await self._read(path)
        for table in bot_tables(TABLES, PLAYERS):
            answer = await self._http.get(f"/{table.name}")
            self._watch.table_page(f"{self.role} /{table.name}", table.name, f"{answer.headers}{answer.text}")
            hands = re.findall(rf'href="/({table.name}/hands/\d+)"', answer.text)[:HANDS_OF_A_PAGE]
            for name in [each for each in hands if each not in self._replayed]:
                self._replayed.add(name)
                replayed = await self._http.get(f"/{name}")
                number = int(name.rpartition("/")[2])
                self._watch.page(f"{self.role} /{name}", replayed.text, (table.name, number))
            for player in re.findall(r'href="(/players/[^"]+)"', answer.text)[:1]:
                await self._read(player)
        self.rounds += 1

    async def _read(self, path: str) -> None:
        answer = await self._http.get(path)
        self._watch.page(f"{self.role} {path}", f"{answer.headers}{answer.text}")


async def _shown(house: EmbeddedHouse, table: str, watch: CardWatch, finished: dict[str, int]) -> None:
    """What a player who merely watches the table is shown, hand by hand."""
    async with house.client("onlooker", "player") as client:
        async for update in client.watch(table):
            watch.first_hands.setdefault(table, update.snapshot.hand)
            for seat in update.snapshot.seats:
                watch.shown[table, update.snapshot.hand].update(seat.shown)
            for event in update.events:
                if event.HasField("hand_shown"):
                    watch.shown[table, event.hand].update(event.hand_shown.cards)
                elif event.HasField("hand_ended"):
                    finished[table] = finished.get(table, 0) + 1


async def test_no_byte_to_any_browser_holds_a_card_that_was_not_shown(tmp_path):
    watch, finished = CardWatch(), {}
    tables = [each.name for each in bot_tables(TABLES, PLAYERS)]
    options = ["--tables", str(TABLES), "--players", str(PLAYERS), "--speed", "flatout"]
    with embedded_house(tmp_path / "house", *options) as house:
        async with AsyncExitStack() as stack, asyncio.timeout(RUN_SECONDS), asyncio.TaskGroup() as tasks:
            browsers = [Browser(role, house, watch) for role in ROLES]
            following = [tasks.create_task(_shown(house, table, watch, finished)) for table in tables]
            # Whoever judges what the others get has begun before them.
            while len(watch.first_hands) < len(tables):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            for browser in browsers:
                stack.push_async_callback(browser.close)
                await browser.sign_in()
                following.append(tasks.create_task(browser.follow_overview()))
                following += [tasks.create_task(browser.follow(table)) for table in tables]
            while sum(finished.values()) < HANDS or browsers[0].rounds < ROUNDS_MIN:
                await asyncio.gather(*(browser.read_all() for browser in browsers))
            # The streams end first, so that whatever they told, the onlookers are told before they end too.
            for task in following[TABLES:]:
                task.cancel()
            before = dict(finished)
            while any(finished[table] <= before[table] for table in tables):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            for task in following[:TABLES]:
                task.cancel()
    assert list(watch.not_shown()) == []
    # It was no empty run: tables were drawn while all cards were hidden, and shown cards were found where they may be.
    assert watch.closed_pictures > 100
    assert watch.cards_seen() > 100
    assert len({where for where, _, cards in watch.seen if "/hands/" in where and cards}) >= len(tables)


def test_the_search_finds_cards_however_they_are_written():
    assert cards_in("seat 2 shows 10♣ A♥: a pair") == {"Tc", "Ah"}
    assert cards_in("<td>K of hearts, 10 of spades</td>") == {"Kh", "Ts"}
    assert cards_in('<text class="red">9♦</text> and {"your_cards": ["2c", "Qd"]}') == {"9d", "2c", "Qd"}
    assert cards_in("&#9827; 7&#9827;") == {"7c"}
    assert cards_in("As many as 4d chess, 0a9dKhff and J of all trades") == set()


def test_a_card_that_was_not_shown_is_told():
    watch = CardWatch()
    watch.shown["tables/oak", 7] = {"Ah", "Kd"}
    facts = "<p>hand {}, {}; pot 3</p>"
    watch.picture("a", "tables/oak", facts.format(7, "finished") + "<text>A♥</text>")
    watch.line("b", "tables/oak", 9, "seat 1 shows A♥ K♦: high card")
    assert list(watch.not_shown()) == []
    watch.picture("c", "tables/oak", facts.format(7, "draw") + "<text>A♥</text>")
    watch.picture("d", "tables/oak", facts.format(7, "finished") + "<text>2♥</text>")
    watch.picture("e", "tables/oak", facts.format(8, "finished") + "<text>A♥</text>")
    watch.line("f", "tables/oak", 9, "seat 1 shows A♥ Q♦: high card")
    watch.line("g", "tables/oak", 9, "seat 1 discards A♥")
    watch.page("h", "<td>A of hearts</td>")
    watch.page("i", '["Ah"]', ("tables/oak", 8))
    assert [leak[0] for leak in watch.not_shown()] == ["c", "g", "h", "d", "e", "i", "f"]
