"""What the console refuses before anything is done, and what becomes of an approval that a service refuses."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.table.v1 import table_pb2

from services.console import streams, two_people, web
from services.console.peers import Peers
from services.runtime.access import METHODS, TWO_PEOPLE
from tests.servers import free_port


async def begun(house) -> int:
    """A hand at `tables/oak`; its number."""
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    _, view = await house.turn("oak", ["ann", "bob"])
    return view.hand


async def prepare_void(visitor, hand: int, reason: str = "stuck"):
    await visitor.see("/tables/oak")
    return await visitor.send_form("/tables/oak/act", action="void", hand=str(hand), reason=reason)


async def outcomes(console) -> list[str]:
    return [kept.line.outcome for kept in await console.audit_log.newest()]


WITHOUT_A_WORD = [
    ("/house/act", {}),
    ("/house/act", {"action": ""}),
    ("/house/act", {"action": "pause"}),
    ("/house/act", {"action": "PAUSE-HOUSE"}),
    ("/tables/oak/act", {}),
    ("/tables/oak/act", {"action": "pause-house"}),
    ("/tables/oak/act", {"action": "void"}),
    ("/tables/oak/act", {"action": "void", "hand": "0"}),
    ("/players/ann/act", {}),
    ("/players/ann/act", {"action": "void"}),
    ("/players/ann/act", {"action": "adjust"}),
]


async def test_a_form_that_does_not_say_what_does_nothing(visit, house, console):
    await house.open_table("oak")
    await house.make_player("ann")
    olga = await visit("olga", "operator")
    await olga.see("/")
    for path, form in WITHOUT_A_WORD:
        answer = await olga.send_form(path, reason="a test", **form)
        assert (answer.status_code, "INVALID_REQUEST" in answer.text) == (400, True), (path, form)
    assert (await house.view("oak")).table.state == table_pb2.TABLE_STATE_OPEN
    assert await outcomes(console) == []
    assert await console.approvals.waiting() == []


async def test_an_approval_needs_its_word_too(visit, house, console):
    await prepare_void(await visit("olga", "operator"), await begun(house))
    (prepared,) = await console.approvals.waiting()
    otto = await visit("otto", "operator")
    await otto.see("/approvals")
    for form in ({}, {"action": "yes"}):
        assert (await otto.send_form(f"/approvals/{prepared.id}", **form)).status_code == 400
    assert await console.approvals.waiting() == [prepared]


MARKS = ["\x00", "\n", "\r\n", "\t", "\x1b[1m", "\x85", "\u200b", "\u200f", "\u2028", "\u202e", "\u2066"]


async def test_a_reason_that_does_not_show_itself_is_refused_to_the_first_person(visit, house, console):
    hand = await begun(house)
    olga = await visit("olga", "operator")
    for reason in [f"a{mark}b" for mark in MARKS]:
        answers = [await prepare_void(olga, hand, reason)]
        answers.append(await olga.send_form("/tables/oak/act", action="pause", reason=reason))
        answers.append(await olga.send_form("/house/act", action="pause-house", reason=reason))
        form = {"action": "adjust", "currency": "CHIPS", "amount": "5", "reason": reason}
        answers.append(await olga.send_form("/players/ann/act", **form))
        for answer in answers:
            assert (answer.status_code, "a reason is one line" in answer.text) == (400, True), ascii(reason)
    assert await console.approvals.waiting() == []
    assert await outcomes(console) == []


REASONS = ["Störung am Tisch – geprüft", "テーブルが止まった", "עצור את היד", "ok 👍"]


async def test_a_reason_may_be_in_any_language(visit, house, console):
    hand = await begun(house)
    olga, otto = await visit("olga", "operator"), await visit("otto", "operator")
    for reason in REASONS:
        assert (await prepare_void(olga, hand, reason)).status_code == 303
        assert f"<bdi>{reason}</bdi>" in (await otto.see("/approvals")).text
    last = (await console.approvals.waiting())[-1]
    assert last.reason == REASONS[-1]
    assert (await otto.send_form(f"/approvals/{last.id}", action="approve")).status_code == 303
    assert (await outcomes(console))[0] == "done"


async def test_only_the_hand_that_is_played_can_be_prepared_for_a_void(visit, house, console):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    await house.play_hand("oak", "ann", "bob")
    _, view = await house.turn("oak", ["ann", "bob"])
    olga = await visit("olga", "operator")
    for hand in (view.hand - 1, view.hand + 1, view.hand + 99):
        answer = await prepare_void(olga, hand)
        assert (answer.status_code, f"it plays hand {view.hand} now" in answer.text) == (409, True), hand
    assert await console.approvals.waiting() == []


async def test_a_table_that_plays_no_hand_has_none_to_void(visit, house, console):
    await house.open_table("oak")
    answer = await prepare_void(await visit("olga", "operator"), 1)
    assert (answer.status_code, "it plays none now" in answer.text) == (409, True)
    assert await console.approvals.waiting() == []


async def test_an_approval_that_reaches_nobody_waits_on_and_is_done_once_it_does(visit, house, console, make_settings):
    await prepare_void(await visit("olga", "operator"), await begun(house))
    (prepared,) = await console.approvals.waiting()
    otto = await visit("otto", "operator")
    await otto.see("/approvals")
    away = Peers(make_settings(table_address=f"127.0.0.1:{free_port()}"))
    table, console.peers.table = console.peers.table, away.table
    try:
        answer = await otto.send_form(f"/approvals/{prepared.id}", action="approve")
    finally:
        console.peers.table = table
        await away.close()
    assert (answer.status_code, "still waits under Approvals" in answer.text) == (503, True)
    assert "still waits under Approvals" in (await outcomes(console))[0]
    assert await console.approvals.waiting() == [prepared]
    assert (await otto.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 303
    assert (await outcomes(console))[0] == "done"
    assert await console.approvals.waiting() == []


async def test_an_approval_that_is_refused_for_good_is_said_to_be_over(visit, house, console):
    hand = await begun(house)
    await prepare_void(await visit("olga", "operator"), hand)
    (prepared,) = await console.approvals.waiting()
    await house.play_hand("oak", "ann", "bob")
    otto = await visit("otto", "operator")
    await otto.see("/approvals")
    answer = await otto.send_form(f"/approvals/{prepared.id}", action="approve")
    assert (answer.status_code, "This approval is over and nothing was done" in answer.text) == (409, True)
    assert "This approval is over and nothing was done" in (await outcomes(console))[0]
    assert await console.approvals.waiting() == []


@pytest.mark.parametrize("who", ["olga", "otto"])
async def test_either_person_may_withdraw_what_was_prepared(visit, house, console, who):
    hand = await begun(house)
    await prepare_void(await visit("olga", "operator"), hand)
    (prepared,) = await console.approvals.waiting()
    visitor = await visit(who, "operator")
    assert "Withdraw" in (await visitor.see("/approvals")).text
    answer = await visitor.send_form(f"/approvals/{prepared.id}", action="withdraw")
    assert answer.headers["location"] == "/approvals"
    assert (await outcomes(console))[0] == f"withdrawn by {who}: nothing was done"
    assert await console.approvals.waiting() == []
    assert (await house.view("oak")).hand == hand


CORRECTIONS = [
    ("12", "JPY", "+12", "give 12 JPY", "12"),
    ("1200", "JPY", "+1200", "give 1,200 JPY", "1,212"),
    ("-200", "JPY", "-200", "take 200 JPY", "1,012"),
    ("12.50", "EUR", "+1250", "give 12.50 EUR", "12.50"),
    ("12", "EUR", "+1200", "give 12.00 EUR", "24.50"),
    ("1.250", "KWD", "+1250", "give 1.250 KWD", "1.250"),
    ("150", "CHIPS", "+150", "give 150 CHIPS", "10,150"),
    ("-50", "CHIPS", "-50", "take 50 CHIPS", "10,100"),
]


async def test_a_correction_moves_what_its_amount_says_in_its_own_currency(visit, house, console):
    await house.make_player("ann", 10_000)
    olga, otto = await visit("olga", "operator"), await visit("otto", "operator")
    await olga.see("/players/ann")
    for amount, currency, minor, told, cash in CORRECTIONS:
        form = {"action": "adjust", "currency": currency, "amount": amount, "reason": "a wrong deposit"}
        assert (await olga.send_form("/players/ann/act", **form)).status_code == 303
        (prepared,) = await console.approvals.waiting()
        assert prepared.target == f"players/ann/cash/{currency}/{minor}"
        assert f"{told}: cash of players/ann" in (await otto.see("/approvals")).text
        assert (await otto.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 303
        text = (await otto.see("/players/ann")).text
        assert f"<dt>Cash {currency}</dt><dd>{cash}</dd>" in text
        assert f">{told.replace('give ', '').replace('take ', '-')}</td>" in text


NO_CORRECTIONS = [
    ("12.5", "JPY", "JPY has no decimals"),
    ("12.00", "CHIPS", "CHIPS has no decimals"),
    ("12.505", "EUR", "EUR has 2 decimals"),
    ("12.50", "KWD", "KWD has 3 decimals"),
]


async def test_decimals_that_a_currency_has_not_are_refused_in_words(visit, house, console):
    await house.make_player("ann", 10_000)
    olga = await visit("olga", "operator")
    await olga.see("/players/ann")
    for amount, currency, told in NO_CORRECTIONS:
        form = {"action": "adjust", "currency": currency, "amount": amount, "reason": "a wrong deposit"}
        answer = await olga.send_form("/players/ann/act", **form)
        assert (answer.status_code, told in answer.text) == (400, True)
    assert await console.approvals.waiting() == []


async def test_nobody_who_is_not_there_is_corrected(visit, console):
    olga = await visit("olga", "operator")
    await olga.see("/ledger")
    form = {"action": "adjust", "currency": "CHIPS", "amount": "5", "reason": "a wrong deposit"}
    assert (await olga.send_form("/players/nobody/act", **form)).status_code == 404
    assert await console.approvals.waiting() == []


async def test_after_signing_out_a_copy_of_the_cookie_opens_nothing(visit, console):
    olga = await visit("olga", "operator")
    await olga.see("/ledger")
    copy = dict(olga.cookies)
    assert (await olga.send_form("/sign-out")).headers["location"] == "/sign-in"
    other = await visit("olga", "operator")
    assert (await other.get("/ledger")).status_code == 200
    olga.cookies.update(copy)
    for path in ("/ledger", "/approvals", "/live"):
        assert (await olga.get(path)).headers["location"] == "/sign-in", path
    assert (await olga.send_form("/house/act", action="pause-house", reason="a test")).status_code == 303
    assert await outcomes(console) == []
    # The other session of the same person goes on.
    assert (await other.get("/ledger")).status_code == 200


async def test_a_live_page_ends_when_its_person_signs_out(visit, house, console, monkeypatch):
    monkeypatch.setattr("services.console.streams.SIGNED_OUT_SECONDS", 0.0)
    await house.open_table("oak")
    olga = await visit("olga", "operator")
    await olga.see("/")
    following = asyncio.create_task(olga.get("/live"))
    async with asyncio.timeout(20):
        while not streams._open:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await olga.send_form("/sign-out")
        assert "you have signed out" in (await following).text


def test_who_may_see_and_approve_is_who_the_services_let():
    people = {"viewer", "operator", "finance", "auditor"}
    assert METHODS["/fivedraw.deck.v1.DeckService/GetRngHealth"] & people == set(web.SEE_CARDS)
    assert METHODS["/fivedraw.table.v1.ReplicaService/ListReplicas"] & people == set(web.SEE_PROCESSES)
    void, adjust = (
        TWO_PEOPLE[f"/fivedraw.{each}"]
        for each in (
            "table.v1.TableService/VoidHand",
            "wallet.v1.WalletService/AdjustBalance",
        )
    )
    assert (void, adjust) == tuple(frozenset(roles) for roles in two_people.SECOND_ROLES.values())
