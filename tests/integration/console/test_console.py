"""The console over HTTP before a real house: who gets in, what each role gets, no hidden card."""

from __future__ import annotations

import asyncio
import json

import pytest
from fivedraw.table.v1 import table_pb2

from services.console import streams, words
from services.console.app import make_app
from tests.integration.console.conftest import Visitor

PAGES = [
    *("/", "/tables", "/tables/oak", "/ledger", "/cards"),
    *("/processes", "/approvals", "/audit-log", "/players/ann"),
]


async def test_without_signing_in_every_page_leads_to_the_form(console):
    visitor = Visitor(make_app(console))
    for path in [*PAGES, "/live", "/tables/oak/live"]:
        answer = await visitor.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in"), path
    for path in (
        "/tables/oak/act",
        "/players/ann/act",
        "/house/act",
        "/ledger/audit",
        "/processes/p/act",
        "/approvals/x",
    ):
        assert (await visitor.post(path)).status_code == 303, path


@pytest.mark.parametrize("name_and_roles", [("ann", "player"), ("nobody",)])
async def test_players_do_not_get_in(console, token, name_and_roles):
    answer = await Visitor(make_app(console)).post("/sign-in", data={"token": token(*name_and_roles)})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_a_false_token_or_cookie_is_nobody(console):
    visitor = Visitor(make_app(console))
    assert (await visitor.post("/sign-in", data={"token": "a.b.c"})).status_code == 401
    visitor.cookies.set("fivedraw_console", "QUJD")
    assert (await visitor.get("/")).status_code == 303


async def test_the_cookie_is_kept_from_scripts_and_other_sites_and_shows_no_token(console, token):
    olga = token("olga", "operator")
    answer = await Visitor(make_app(console)).post("/sign-in", data={"token": olga})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert olga not in cookie


async def test_a_session_ends_with_its_token(visit):
    visitor = await visit("olga", "operator", lifetime_seconds=2)
    assert (await visitor.get("/approvals")).status_code == 200
    async with asyncio.timeout(10):
        while (await visitor.get("/approvals")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert (await visitor.get("/approvals")).headers["location"] == "/sign-in"


async def test_every_answer_carries_the_security_headers(visit, house):
    await house.open_table("oak")
    visitor = await visit("olga", "operator")
    for path in ("/", "/tables/oak", "/static/console.js", "/no-such-page", "/tables/none"):
        headers = (await visitor.get(path)).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert (await visitor.get("/tables/none")).status_code == 404


async def test_no_page_has_script_or_style_of_its_own(visit, house):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    visitor = await visit("olga", "operator")
    for path in PAGES:
        text = (await visitor.see(path)).text
        assert "style=" not in text
        assert "<style" not in text
        assert text.count("<script") == 1
        assert "onclick" not in text


@pytest.mark.parametrize(
    ("role", "seen"),
    [
        ("viewer", {"/", "/tables", "/tables/oak", "/ledger", "/cards", "/processes"}),
        ("operator", set(PAGES)),
        ("finance", set(PAGES) - {"/cards", "/processes"}),
        ("auditor", set(PAGES) - {"/approvals"}),
    ],
)
async def test_each_role_sees_its_own(visit, house, role, seen):
    await house.open_table("oak")
    await house.make_player("ann")
    visitor = await visit("pat", role)
    assert {path for path in PAGES if (await visitor.get(path)).status_code == 200} == seen


@pytest.mark.parametrize("role", ["viewer", "finance", "auditor"])
async def test_only_operators_act_on_tables(visit, house, role):
    await house.open_table("oak")
    visitor = await visit("pat", role)
    visitor.csrf = ""
    for action in ("pause", "close", "void"):
        answer = await visitor.send_form("/tables/oak/act", action=action, reason="a test", hand="1")
        assert answer.status_code == 403
    assert (await house.view("oak")).table.state == table_pb2.TABLE_STATE_OPEN


async def test_a_form_of_another_session_or_site_is_refused(visit, house):
    await house.open_table("oak")
    olga, other = await visit("olga", "operator"), await visit("otto", "operator")
    await olga.see("/tables/oak")
    await other.see("/tables/oak")
    olga.csrf, right = other.csrf, olga.csrf
    assert (await olga.send_form("/tables/oak/act", action="pause", reason="a test")).status_code == 403
    foreign = {"sec-fetch-site": "cross-site"}
    form = {"csrf": right, "action": "pause", "reason": "a test"}
    assert (await olga.post("/tables/oak/act", data=form, headers=foreign)).status_code == 403
    assert (await house.view("oak")).table.state == table_pb2.TABLE_STATE_OPEN


async def test_actions_need_a_reason_and_leave_their_lines(visit, house, console):
    await house.open_table("oak")
    olga = await visit("olga", "operator")
    await olga.see("/tables/oak")
    assert (await olga.send_form("/tables/oak/act", action="pause", reason="")).status_code == 400
    assert (await olga.send_form("/tables/oak/act", action="pause", reason="<b>noise</b>")).status_code == 303
    assert (await house.view("oak")).table.state == table_pb2.TABLE_STATE_PAUSED
    assert (await olga.send_form("/tables/oak/act", action="resume", reason="quiet")).status_code == 303
    assert (await olga.send_form("/tables/none/act", action="resume", reason="quiet")).status_code == 404
    told = [(kept.line.action, kept.line.outcome.partition(":")[0]) for kept in await console.audit_log.newest()]
    expected = [("resume", "TABLE_NOT_FOUND"), ("resume", "asked"), ("resume", "done"), ("resume", "asked")]
    assert told == [*expected, ("pause", "done"), ("pause", "asked")]
    text = (await olga.see("/audit-log")).text
    assert "All 6 lines follow from each other" in text
    assert "<b>noise</b>" not in text


async def test_a_frozen_player_is_shown_so(visit, house):
    await house.make_player("ann")
    fay = await visit("fay", "finance")
    await fay.see("/players/ann")
    assert (await fay.send_form("/players/ann/act", action="freeze", reason="under review")).status_code == 303
    assert "Lift the freeze" in (await fay.see("/players/ann")).text


async def test_two_operators_void_a_hand(visit, house, console):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    _, view = await house.turn("oak", ["ann", "bob"])
    olga, otto = await visit("olga", "operator"), await visit("otto", "operator")
    await olga.see("/tables/oak")
    answer = await olga.send_form("/tables/oak/act", action="void", hand=str(view.hand), reason="stuck")
    assert answer.headers["location"] == "/approvals"
    (prepared,) = await console.approvals.waiting()
    await olga.see("/approvals")
    assert (await olga.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 403
    await otto.see("/approvals")
    assert (await otto.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 303
    assert (await otto.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 404
    newest = (await console.audit_log.newest())[0].line
    assert (newest.person, newest.second, newest.action, newest.outcome) == ("olga", "otto", "void", "done")
    stacks = [seat.stack_minor + seat.bet_minor for seat in (await house.view("oak")).seats]
    assert sum(stacks) == 1000


async def test_no_byte_holds_a_card_before_it_is_shown(visit, house, console, token):
    """Whole hands are played; what goes to the browser meanwhile names no card that its holder alone knows."""
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob", "cid")
    olga = await visit("olga", "operator")
    session = await console.sessions.begin(token("olga", "operator"))
    pieces = streams._table(console, session, "tables/oak")
    after = looked = 0
    for _ in range(40):
        player, view = await house.turn("oak", ["ann", "bob", "cid"], after)
        after = view.turn.turn
        held = {card for name in ("ann", "bob", "cid") for card in (await house.view("oak", name)).your_cards}
        shown = {card for seat in view.seats for card in seat.shown}
        piece = await anext(pieces)
        text = json.dumps(piece, ensure_ascii=False) + (await olga.see("/tables/oak")).text
        same_hand = piece["hand"] == view.hand
        names = [
            (card, *(f"{each.rank}{each.suit}", each.name)) for card in held - shown for each in words.cards([card])
        ]
        # The lines of a hand's end still name what that hand showed: only the present hand's secrets count.
        lines = [line for line in piece["lines"] if " shows " in line]
        for card, drawn, name in names if same_hand and not lines else []:
            assert name not in text, (card, name)
            assert drawn not in text, (card, drawn)
            assert f'"{card}"' not in text
            looked += 1
        await house.act("oak", player, view)
    await pieces.aclose()
    assert looked > 100
    everything = "".join(olga.seen)
    assert "your_cards" not in everything


async def test_a_live_page_tells_of_the_table_and_ends_for_too_many(visit, house, console, token):
    await house.open_table("oak")
    session = await console.sessions.begin(token("olga", "operator"))
    pieces = streams._house(console, session)
    rows: dict[str, str] = {}
    async with asyncio.timeout(10):
        async for piece in pieces:
            rows |= piece["rows"]
            if "oak" in rows:
                break
    assert "house" in rows["oak"]
    await pieces.aclose()
