"""The console in a real browser, before a whole embedded house: what an operator on duty does, and whether all can."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.embedded import EmbeddedHouse, embedded_house

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SHOTS = ROOT / "build" / "screenshots"
# No sandbox for root, and nothing that looks for a network.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Iterator[EmbeddedHouse]:
    with embedded_house(tmp_path_factory.mktemp("browser") / "house", "--tables", "3") as running:
        yield running


@pytest.fixture(scope="module")
def address(house) -> str:
    return f"http://127.0.0.1:{house.port_base + 21}"


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield chromium
        await chromium.close()


async def sign_in(browser: Browser, house: EmbeddedHouse, address: str, who: str, role: str) -> Page:
    """A person's own browser window; anything that the page's policy or code refuses is a fault of the test."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda said: page.faults.append(said.text) if "Content Security" in said.text else None)
    await page.goto(f"{address}/")
    await page.get_by_label("Your token").fill(house.keys().mint(who, role))
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{address}/")
    return page


async def shot(page: Page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


async def violations(page: Page) -> list[str]:
    """What axe finds. Its own script is put in by the browser's debugger, which the page's policy does not bind."""
    await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"]]


async def test_an_operator_finds_a_table_pauses_it_and_two_void_its_hand(browser, house, address):
    olga = await sign_in(browser, house, address, "olga", "operator")
    await expect(olga.locator("#figures")).to_contain_text("in balance")
    await shot(olga, "house")
    await olga.get_by_role("link", name="Bots 1-house").click()
    # It changes without a reload: events arrive, and the drawn table is another.
    await expect(olga.locator("#lines li").nth(5)).to_be_attached(timeout=20_000)
    before = await olga.locator("#drawn .facts").inner_text()
    await expect(olga.locator("#drawn .facts")).not_to_have_text(before, timeout=20_000)
    await olga.get_by_label("Reason").fill("looking into it")
    await olga.get_by_role("button", name="Pause").click()
    await expect(olga.locator("#drawn .state-paused")).to_be_visible(timeout=20_000)
    await shot(olga, "table")

    hand = await olga.locator("#hand").input_value()
    await olga.get_by_label("Reason").fill("stuck")
    await olga.get_by_role("button", name="Void this hand").click()
    await expect(olga.get_by_text("You prepared this")).to_be_visible()
    otto = await sign_in(browser, house, address, "otto", "operator")
    await otto.get_by_role("link", name="Approvals").click()
    await shot(otto, "approvals")
    await otto.get_by_role("button", name=f"hands/{hand}").click()
    await olga.goto(f"{address}/audit-log")
    row = olga.locator("tbody tr").first
    outcome = await row.inner_text()
    assert "olga and otto" in outcome
    assert "done" in outcome or "HAND_CLOSED" in outcome or "HAND_NOT_OPEN" in outcome
    await expect(olga.get_by_text("lines follow from each other")).to_be_visible()
    await shot(olga, "audit-log")
    await olga.goto(f"{address}/tables/{(await table_of(olga, outcome))}")
    await olga.get_by_label("Reason").fill("goes on")
    await olga.get_by_role("button", name="Resume").click()
    await expect(olga.locator("#drawn .state-open")).to_be_visible(timeout=20_000)
    assert olga.faults == []
    assert otto.faults == []


async def table_of(_: Page, row: str) -> str:
    found = re.search(r"tables/([\w-]+)/hands", row)
    assert found, row
    return found[1]


async def test_a_finished_hand_is_stepped_through(browser, house, address):
    olga = await sign_in(browser, house, address, "olga", "operator")
    await olga.get_by_role("link", name="Bots 2-clocked").click()
    link = olga.locator(".hands a").first
    async with asyncio.timeout(60):
        while not await link.count():
            await asyncio.sleep(1)
            await olga.reload()
    await link.click()
    await olga.get_by_role("button", name="Next").click()
    await olga.get_by_role("button", name="Next").click()
    await expect(olga.locator("#at")).to_contain_text("step 2 of")
    await expect(olga.locator("#steps .now")).to_have_count(1)
    await shot(olga, "replay")
    assert olga.faults == []


async def test_axe_finds_nothing_on_any_page(browser, house, address):
    page = await sign_in(browser, house, address, "ada", "auditor")
    olga = await sign_in(browser, house, address, "olga", "operator")
    found = {}
    for each in ("/", "/tables", "/ledger", "/cards", "/audit-log"):
        await page.goto(address + each)
        found[each] = await violations(page)
    await olga.goto(f"{address}/")
    await olga.get_by_role("link", name="Bots 1-house").click()
    await olga.wait_for_selector("#drawn svg")
    found["table"] = await violations(olga)
    await olga.locator("#drawn a").first.click()
    found["player"] = await violations(olga)
    await shot(olga, "player")
    await olga.goto(f"{address}/approvals")
    found["approvals"] = await violations(olga)
    await page.get_by_role("button", name="Sign out").click()
    found["sign-in"] = await violations(page)
    assert {path: faults for path, faults in found.items() if faults} == {}


async def test_it_is_used_by_keyboard_alone(browser, house, address):
    page = await sign_in(browser, house, address, "olga", "operator")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    for _ in range(40):
        await page.keyboard.press("Tab")
        reached.add(await page.evaluate("(document.activeElement.textContent || '').trim()"))
    assert {"Tables", "Audit log", "Sign out", "Bots 1-house"} <= reached


async def test_five_hundred_tables_stay_within_the_pages_budget(browser, tmp_path_factory):
    """At most a tenth of the page's time goes into updates; what they cost the console's process is told."""
    folder = tmp_path_factory.mktemp("many") / "house"
    with embedded_house(folder, "--tables", "3") as house:
        async with house.client("olga", "operator") as client:
            for number in range(497):
                await client.create_table(f"extra-{number}", rulebook="rulebooks/house", currency="EUR")
        address = f"http://127.0.0.1:{house.port_base + 21}"
        page = await sign_in(browser, house, address, "olga", "operator")
        await expect(page.locator("#rows tr")).to_have_count(500, timeout=30_000)
        pid = house.pid("console")
        before, seconds = processor_seconds(pid), 20
        await page.evaluate("window.fivedrawBusy = 0; window.fivedrawPieces = 0")
        await asyncio.sleep(seconds)
        busy = await page.evaluate("window.fivedrawBusy")
        pieces = await page.evaluate("window.fivedrawPieces")
        spent = processor_seconds(pid) - before
        figures = {"pieces": pieces, "page_ms_a_second": busy / seconds, "console_cores": spent / seconds}
        SHOTS.mkdir(parents=True, exist_ok=True)
        (SHOTS / "five-hundred.json").write_text(json.dumps(figures))
        assert pieces >= seconds // 2
        assert busy / 1000 < 0.1 * seconds
        await shot(page, "five-hundred")


def processor_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
