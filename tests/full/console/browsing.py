"""What the browser's tests share: a person signs in, looks, keeps a picture, and has axe judge the page."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, Page

ROOT = Path(__file__).parents[3]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SHOTS = ROOT / "build" / "screens"
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


async def sign_in(browser: Browser, address: str, token: str) -> Page:
    """A person's own browser window; anything that the page's policy or code refuses is a fault of the test."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda said: page.faults.append(said.text) if "Content Security" in said.text else None)
    await page.goto(f"{address}/")
    await page.get_by_label("Your token").fill(token)
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
