"""Five hundred tables that all change every second: what reaches the page is bounded, and the page takes it in."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from playwright.async_api import expect

from services.console.streams import FIGURES_EVERY_ROUNDS, ROUND_SECONDS
from tests.full.console.browsing import SHOTS, shot, sign_in, violations
from tests.full.console.crowd import STILL, crowd, page_processor_seconds

pytestmark = [pytest.mark.full, pytest.mark.timeout(200)]

TABLES = 500
MESSAGES = 12
# What a row of the list and its address take at most, as JSON.
ROW_BYTES_MAX = 1_000

WATCH = """() => {
  const told = window.told = { rows: 0, others: 0, long: 0, longest: 0, began: performance.now() };
  new MutationObserver((records) => {
    const rows = new Set(), others = new Set();
    for (const each of records) {
      if (!each.target.isConnected) continue;
      const element = each.target.nodeType === Node.TEXT_NODE ? each.target.parentElement : each.target;
      const row = element.closest("#rows tr");
      if (row) rows.add(row); else others.add(each.target);
    }
    told.rows += rows.size;
    told.others += others.size;
  }).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) { told.long += 1; told.longest = Math.max(told.longest, each.duration); }
  }).observe({ type: "longtask" });
  window.fivedrawBusy = window.fivedrawPieces = window.fivedrawBytes = 0;
}"""


async def test_the_one_of_five_hundred_that_stands_still_is_in_the_first_row(browser, token, jwks_file, tmp_path):
    async with crowd(tmp_path, TABLES, jwks_file) as running:
        page = await sign_in(browser, running.address, token("olga", "operator"))
        first = page.locator("#rows tr").first
        await expect(first).to_contain_text(f"Crowd {STILL}", timeout=60_000)
        await expect(first.locator(".stuck")).to_have_text("3 min, waits for the wallet")
        await expect(page.locator("#rows .stuck")).to_have_count(1)
        await expect(page.locator("#figures")).to_contain_text(re.compile(r"Standing still\s*1"), timeout=30_000)
        await shot(page, "stuck")
        # And so it is in the list of tables, also where a search finds it among others.
        await page.get_by_role("link", name="Tables", exact=True).click()
        await expect(page.locator("#rows tr").first).to_contain_text(f"Crowd {STILL}")
        await page.goto(f"{running.address}/tables?q=crowd%203")
        await expect(page.locator("#rows tr").first).to_contain_text(f"Crowd {STILL}")
        await expect(page.locator("#count")).to_contain_text("1 of them stands still in a hand")
        assert await violations(page) == []
        assert await page.locator("#rows a").first.get_attribute("href") == f"/tables/crowd-{STILL}"
        assert page.faults == []


async def test_five_hundred_tables_that_all_change_cost_the_page_what_was_counted(browser, token, jwks_file, tmp_path):
    async with crowd(tmp_path, TABLES, jwks_file) as running:
        page = await sign_in(browser, running.address, token("olga", "operator"))
        await expect(page.locator("#rows tr")).to_have_count(TABLES, timeout=30_000)
        await expect(page.locator("#figures")).to_contain_text("in balance", timeout=30_000)
        elements = await page.evaluate("document.querySelectorAll('*').length")
        before, page_before = running.processor_seconds(), page_processor_seconds()
        await page.evaluate(WATCH)
        async with asyncio.timeout(90):
            while await page.evaluate("window.fivedrawPieces") < MESSAGES:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        told = await page.evaluate(
            "({ ...window.told, busy: window.fivedrawBusy, pieces: window.fivedrawPieces, bytes: window.fivedrawBytes,"
            " seconds: (performance.now() - window.told.began) / 1000 })"
        )
        spent, page_spent = running.processor_seconds() - before, page_processor_seconds() - page_before
        figures = {
            "messages": told["pieces"],
            "kilobytes_a_message": round(told["bytes"] / told["pieces"] / 1024),
            "rows_changed": told["rows"],
            "script_ms_a_message": round(told["busy"] / told["pieces"], 1),
            "page_processor_ms_a_message": round(1000 * page_spent / told["pieces"]),
            "long_tasks": told["long"],
            "longest_task_ms": round(told["longest"]),
            "console_cores": round(spent / told["seconds"], 2),
        }
        SHOTS.mkdir(parents=True, exist_ok=True)
        (SHOTS / "five-hundred.json").write_text(json.dumps(figures, indent=1))
        await shot(page, "five-hundred")

        # Each message tells each table once, however often it changed; the page draws it once, or not if it comes again
        # before its turn. Rows of the message before the first one that is counted may still be on their way.
        assert 2 * TABLES <= told["rows"] <= TABLES * (told["pieces"] + 1)
        assert told["pieces"] <= told["seconds"] / ROUND_SECONDS + 2
        assert told["bytes"] <= told["pieces"] * TABLES * ROW_BYTES_MAX
        # Beside the rows only the figures and two charts change, and not with every message.
        assert told["others"] <= 8 * (told["pieces"] // FIGURES_EVERY_ROUNDS + 1)
        # Nothing is left behind: the page is as large as it was.
        assert await page.evaluate("document.querySelectorAll('*').length") == elements
        assert page.faults == []
