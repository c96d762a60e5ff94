"""The console in a real browser, before a whole embedded house: what an operator on duty does, and whether all can."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from tests.embedded import EmbeddedHouse, embedded_house
from tests.full.console.browsing import shot, sign_in, violations

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Iterator[EmbeddedHouse]:
    with embedded_house(tmp_path_factory.mktemp("browser") / "house", "--tables", "3") as running:
        yield running


@pytest.fixture(scope="module")
def address(house) -> str:
    return f"http://127.0.0.1:{house.port_base + 21}"


async def entered(browser: Browser, house: EmbeddedHouse, address: str, who: str, role: str) -> Page:
    return await sign_in(browser, address, house.keys().mint(who, role))


async def test_an_operator_finds_a_table_pauses_it_and_two_void_its_hand(browser, house, address):
    olga = await entered(browser, house, address, "olga", "operator")
    await expect(olga.locator("#figures")).to_contain_text("in balance")
    await shot(olga, "house")
    await olga.get_by_role("link", name="Bots 1-house").click()
    # It changes without a reload: events arrive, and the drawn table is another.
    await expect(olga.locator("#lines li").nth(5)).to_be_attached(timeout=20_000)
    before = await olga.locator("#drawn .facts").inner_text()
    await expect(olga.locator("#drawn .facts")).not_to_have_text(before, timeout=20_000)
    await paused_in_a_hand(olga)
    await shot(olga, "table")

    hand = await olga.locator("#hand").input_value()
    await olga.get_by_label("Reason").fill("stuck")
    await olga.get_by_role("button", name="Void this hand").click()
    await expect(olga.get_by_text("You prepared this")).to_be_visible()
    otto = await entered(browser, house, address, "otto", "operator")
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


async def paused_in_a_hand(page: Page) -> None:
    """Pauses the table until that falls into the middle of a hand, which then is the one of the form."""
    async with asyncio.timeout(120):
        while True:
            await page.get_by_label("Reason").fill("looking into it")
            await page.get_by_role("button", name="Pause").click()
            await expect(page.locator("#drawn .state-paused")).to_be_visible(timeout=20_000)
            if await page.locator("#void").is_enabled() and await page.locator("#over").inner_text() == "":
                return
            await page.get_by_label("Reason").fill("not yet")
            await page.get_by_role("button", name="Resume").click()
            await expect(page.locator("#drawn .state-open")).to_be_visible(timeout=20_000)


async def test_the_form_keeps_the_hand_that_it_was_opened_for(browser, house, address):
    olga = await entered(browser, house, address, "olga", "operator")
    await olga.get_by_role("link", name="Bots 3-").click()
    opened = await olga.locator("#hand").input_value()
    await olga.get_by_label("Reason").fill("while hands go by")
    over, void = olga.locator("#over"), olga.locator("#void")
    await expect(over).to_have_text(f"Hand {opened} is over.", timeout=60_000)
    await expect(void).to_be_disabled()
    assert await olga.locator("#hand").input_value() == opened
    # It takes the present hand when it is told to, and keeps that one in turn.
    take = olga.locator("#take")
    await expect(take).to_be_visible(timeout=60_000)
    await take.click()
    taken = await olga.locator("#hand").input_value()
    assert int(taken) > int(opened)
    await expect(over).to_have_text(f"Hand {taken} is over.", timeout=60_000)
    assert await olga.locator("#hand").input_value() == taken
    assert await olga.get_by_label("Reason").input_value() == "while hands go by"
    assert await violations(olga) == []
    assert olga.faults == []


async def table_of(_: Page, row: str) -> str:
    found = re.search(r"tables/([\w-]+)/hands", row)
    assert found, row
    return found[1]


async def test_a_finished_hand_is_stepped_through(browser, house, address):
    olga = await entered(browser, house, address, "olga", "operator")
    await olga.get_by_role("link", name="Bots 2-clocked").click()
    link = olga.locator(".hands a").first
    async with asyncio.timeout(60):
        while not await link.count():
            await asyncio.sleep(1)
            await olga.reload()
    await link.click()
    at, drawn = olga.locator("#at"), olga.locator("#drawn")
    await expect(at).to_contain_text("step 1 of")
    before = await drawn.inner_text()
    await olga.get_by_role("button", name="Next").click()
    await olga.get_by_role("button", name="Next").click()
    await expect(at).to_contain_text("step 3 of")
    await expect(olga.locator("#steps .now")).to_have_count(1)
    assert await drawn.inner_text() != before
    # By keyboard alone: to the end, a step back, on, and to the beginning, where the table is as it was.
    await olga.keyboard.press("End")
    steps = await olga.locator("#steps li").count()
    await expect(at).to_contain_text(f"step {steps} of {steps}")
    await shot(olga, "replay")
    await olga.keyboard.press("ArrowLeft")
    await expect(at).to_contain_text(f"step {steps - 1} of")
    await olga.keyboard.press("ArrowRight")
    await expect(at).to_contain_text(f"step {steps} of")
    await olga.keyboard.press("Home")
    await expect(at).to_contain_text("step 1 of")
    assert await drawn.inner_text() == before
    assert await violations(olga) == []
    assert olga.faults == []


async def test_a_drained_process_is_started_anew_and_the_tables_go_on(browser, house, address):
    olga = await entered(browser, house, address, "olga", "operator")
    drained = house.pid("table")
    await olga.get_by_role("link", name="Processes").click()
    await expect(olga.locator("tbody tr")).to_have_count(1)
    await olga.get_by_label("Reason").fill("an upgrade")
    await shot(olga, "processes")
    assert await violations(olga) == []
    await olga.get_by_role("button", name="Drain").click()
    await expect(olga.locator("tbody tr").first).to_contain_text("drain")
    await asyncio.to_thread(house.await_restart, "table", drained)
    async with asyncio.timeout(60):
        await olga.goto(f"{address}/tables")
        while not await olga.get_by_role("link", name="Bots 1-house").count():
            await asyncio.sleep(0.5)
            await olga.goto(f"{address}/tables")
    await olga.get_by_role("link", name="Bots 1-house").click()
    await expect(olga.locator("#lines li").nth(3)).to_be_attached(timeout=60_000)


async def test_axe_finds_nothing_on_any_page(browser, house, address):
    page = await entered(browser, house, address, "ada", "auditor")
    olga = await entered(browser, house, address, "olga", "operator")
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
    page = await entered(browser, house, address, "olga", "operator")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.textContent") == "Skip to the content"
    reached = set()
    for _ in range(40):
        await page.keyboard.press("Tab")
        reached.add(await page.evaluate("(document.activeElement.textContent || '').trim()"))
    assert {"Tables", "Audit log", "Sign out", "Bots 1-house"} <= reached
