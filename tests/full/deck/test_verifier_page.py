"""The verifier's page in a real browser, opened from the disk: a file is dropped in, and the page says what holds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright, expect

from tests.unit.deck.exported import exported
from tests.unit.deck.tampering import RESHUFFLED, TAMPERINGS

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "clients" / "verifier" / "index.html"
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
# No sandbox for root, and nothing that looks for a network.
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]

# A file that comes by the mouse, as the page gets it from the browser.
DROP = """([name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name, { type: "application/json" }));
  for (const kind of ["dragover", "drop"])
    document
      .querySelector("#drop")
      .dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""


@pytest_asyncio.fixture
async def page() -> AsyncIterator[Page]:
    """The page from the disk; whatever it asks of a network, or goes wrong in it, is a fault."""
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        opened = await chromium.new_page()
        opened.faults = []
        opened.on("pageerror", lambda error: opened.faults.append(str(error)))
        opened.on("request", lambda asked: None if asked.url.startswith("file:") else opened.faults.append(asked.url))
        await opened.goto(PAGE.as_uri())
        yield opened
        assert opened.faults == []
        await chromium.close()


@pytest.fixture(scope="module")
def hand() -> dict:
    """A hand with reshuffled discards and players' seeds, as one of its players exported it."""
    return exported(RESHUFFLED, 9, seed=3)


async def test_an_honest_hand_is_proved_line_by_line(page: Page, hand: dict, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(hand, indent=1))
    await page.get_by_label("Drop a file here, or choose one").set_input_files(file)
    await expect(page.get_by_role("status")).to_have_text("mine.json: everything that this file can prove is proved.")
    lines = await page.locator("#lines li").all_inner_texts()
    # Its own five and the four it drew, and five of each of the three hands that were shown.
    assert not any(line.startswith("FAILED") for line in lines)
    assert "proved: All 24 cards that this viewer saw are the ones that were due." in lines
    assert "not proved: That the order came from the committed seed: only an auditor can open it." in lines


async def test_a_changed_hand_that_is_dropped_in_fails_with_the_place_named(page: Page, hand: dict) -> None:
    for tampering in TAMPERINGS:
        changed, place = tampering.change(hand)
        await page.evaluate(DROP, [f"{tampering.name}.json", json.dumps(changed)])
        await expect(page.get_by_role("status")).to_contain_text(f"{tampering.name}.json: this does not check")
        failed = await page.locator("#lines li.failed").all_inner_texts()
        assert any(place in line for line in failed), (place, failed)
    # And the next file begins anew.
    await page.evaluate(DROP, ["honest.json", json.dumps(hand)])
    await expect(page.get_by_role("status")).to_have_text("honest.json: everything that this file can prove is proved.")
    await expect(page.locator("#lines li.failed")).to_have_count(0)


async def test_a_file_that_is_no_hand_is_told_from_one_that_fails(page: Page) -> None:
    for number, text in enumerate(("", "no hand", "[1, 2]", "\x00", "null", '{"table": 3}')):
        await page.evaluate(DROP, [f"{number}.json", text])
        await expect(page.get_by_role("status")).to_have_text(f"{number}.json: this does not check, for 1 reason.")
        await expect(page.locator("#lines li.failed")).to_contain_text(["file: "])


async def test_the_page_cannot_send_a_hand_anywhere(page: Page) -> None:
    """The browser refuses it by the page's own policy, whatever a changed script might try."""
    refused = await page.evaluate("""async () => {
      const refused = [];
      addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
      await fetch("http://127.0.0.1:9/?hand").catch(() => 0);
      navigator.sendBeacon("http://127.0.0.1:9/", "hand");
      await new Promise((done) => {
        const picture = new Image();
        picture.onload = picture.onerror = done;
        picture.src = "http://127.0.0.1:9/?hand";
      });
      await new Promise((done) => setTimeout(done, 0));
      return refused;
    }""")
    assert sorted(refused) == ["connect-src", "connect-src", "img-src"]
    page.faults.clear()


async def test_the_page_can_be_used_by_all(page: Page, hand: dict) -> None:
    await page.evaluate(DROP, ["mine.json", json.dumps(hand)])
    await expect(page.get_by_role("status")).to_contain_text("proved")
    await page.evaluate(AXE.read_text())
    found = await page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    assert [each["id"] for each in found["violations"]] == []
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.id") == "file"
