"""What operators do from the console beyond one table: correct cash by two people, drain a process, replay a hand."""

from __future__ import annotations

import re

import pytest
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb


async def cash_of(house, player: str) -> int:
    asked = wallet_pb.GetBalancesRequest(player=f"players/{player}")
    return (await house.wallet("olga", "operator").GetBalances(asked)).cash[0].amount_minor


async def prepare(visitor, **fields: str):
    await visitor.see("/players/ann")
    form = {"action": "adjust", "currency": "CHIPS", "reason": "a wrong deposit"}
    return await visitor.send_form("/players/ann/act", **form | fields)


async def test_two_people_correct_a_players_cash(visit, house, console):
    await house.make_player("ann", 100_00)
    fay, otto = await visit("fay", "finance"), await visit("otto", "operator")
    assert (await prepare(fay, amount="-1250")).headers["location"] == "/approvals"
    assert await cash_of(house, "ann") == 100_00
    (prepared,) = await console.approvals.waiting()
    await fay.see("/approvals")
    assert (await fay.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 403
    assert "take 1,250 CHIPS: cash of players/ann" in (await otto.see("/approvals")).text
    assert (await otto.send_form(f"/approvals/{prepared.id}", action="approve")).headers["location"] == "/players/ann"
    assert await cash_of(house, "ann") == 87_50
    assert "adjustment" in (await otto.see("/players/ann")).text
    lines = [kept.line for kept in await console.audit_log.newest()]
    assert [(line.person, line.second, line.outcome) for line in lines] == [
        ("fay", "otto", "done"),
        ("fay", "otto", "asked"),
        ("fay", "", "prepared: waits for a second person"),
    ]
    assert {(line.action, line.target, line.reason) for line in lines} == {
        ("adjust", "players/ann/cash/CHIPS/-1250", "a wrong deposit")
    }


async def test_a_correction_that_the_ledger_refuses_is_told_and_written_down(visit, house, console):
    await house.make_player("ann", 100_00)
    olga, fay = await visit("olga", "operator"), await visit("fay", "finance")
    await prepare(olga, amount="-10001")
    (prepared,) = await console.approvals.waiting()
    await fay.see("/approvals")
    answer = await fay.send_form(f"/approvals/{prepared.id}", action="approve")
    assert (answer.status_code, "INSUFFICIENT_FUNDS" in answer.text) == (409, True)
    assert (await console.audit_log.newest())[0].line.outcome.startswith("INSUFFICIENT_FUNDS")
    assert await cash_of(house, "ann") == 100_00


@pytest.mark.parametrize("amount", ["", "0", "-0", "1,50", "12.00", "1.5", "1e9", "NaN", "9" * 16])
async def test_what_is_no_amount_is_refused(visit, house, console, amount):
    await house.make_player("ann", 100_00)
    answer = await prepare(await visit("olga", "operator"), amount=amount)
    assert (answer.status_code, "INVALID_REQUEST" in answer.text) == (400, True)
    assert await console.approvals.waiting() == []


async def test_who_may_not_stand_behind_an_action_leaves_it_for_others(visit, house, console):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    _, view = await house.turn("oak", ["ann", "bob"])
    olga, fay, ada = await visit("olga", "operator"), await visit("fay", "finance"), await visit("ada", "auditor")
    await olga.see("/tables/oak")
    await olga.send_form("/tables/oak/act", action="void", hand=str(view.hand), reason="stuck")
    (prepared,) = await console.approvals.waiting()
    await fay.see("/approvals")
    assert (await fay.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 403
    await ada.see("/ledger")
    assert (await ada.send_form(f"/approvals/{prepared.id}", action="approve")).status_code == 403
    assert [each.id for each in await console.approvals.waiting()] == [prepared.id]


@pytest.mark.parametrize("role", ["viewer", "auditor"])
async def test_others_adjust_nothing(visit, house, console, role):
    await house.make_player("ann", 100_00)
    visitor = await visit("pat", role)
    await visitor.see("/ledger")
    form = {"action": "adjust", "currency": "CHIPS", "amount": "500", "reason": "why not"}
    assert (await visitor.send_form("/players/ann/act", **form)).status_code == 403
    assert await console.approvals.waiting() == []


async def test_a_process_is_drained_with_a_reason(visit, house, console):
    second = await house.add_process()
    olga, vic = await visit("olga", "operator"), await visit("vic", "viewer")
    assert second.replicas.id in (await vic.see("/processes")).text
    await olga.see("/processes")
    path = f"/processes/{second.replicas.id}/act"
    assert (await vic.send_form(path, action="drain", reason="a test")).status_code == 403
    assert (await olga.send_form(path, action="drain", reason="")).status_code == 400
    assert (await olga.send_form(path, reason="no action")).status_code == 400
    assert (await olga.send_form(path, action="stop", reason="another action")).status_code == 400
    assert (await olga.send_form("/processes/none/act", action="drain", reason="a test")).status_code == 404
    await second.replicas.beat()
    assert not second.replicas.told_to_end.is_set()
    assert (await olga.send_form(path, action="drain", reason="an upgrade")).headers["location"] == "/audit-log"
    await second.replicas.beat()
    assert second.replicas.told_to_end.is_set()
    assert not house.processes[0].replicas.told_to_end.is_set()
    assert "(olga: an upgrade)" in (await vic.see("/processes")).text
    newest = (await console.audit_log.newest())[0].line
    assert (newest.action, newest.target, newest.outcome) == ("drain", f"replicas/{second.replicas.id}", "done")


async def test_a_finished_hand_is_drawn_at_every_step(visit, house):
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    hand = await house.play_hand("oak", "ann", "bob")
    await house.write_history()
    text = (await (await visit("olga", "operator")).see(f"/tables/oak/hands/{hand}")).text
    drawn = text.split("<template>")
    # The table before the hand is drawn outside of the steps too, and is the first of them.
    assert drawn[0].count('<svg class="table"') == 1
    assert all(each.count('<svg class="table"') == 1 for each in drawn[1:])
    assert len(drawn) > 8
    pots = [float(found) for each in drawn[1:] for found in re.findall(r'class="pot"[^>]*>pot ([\d.]+)<', each)]
    assert len(pots) == len(drawn) - 1
    assert pots[0] == 0
    assert max(pots) > 0
    # Nobody's cards lie open before the showdown, and somebody's do at its end.
    assert 'class="face"' not in drawn[1]
    assert 'class="face"' in drawn[-1]
    assert "before the hand" in drawn[0] + drawn[1]


async def test_a_hand_that_there_is_not_is_not_found(visit):
    assert (await (await visit("olga", "operator")).get("/tables/oak/hands/7")).status_code == 404
