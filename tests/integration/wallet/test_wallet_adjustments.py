"""Corrections of ann's cash (600 EUR) by hand: by two people, against an account of their own, never below zero."""

from __future__ import annotations

import json
from functools import partial

import grpc
import pytest
from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc

from services.runtime.auth import SECOND_TOKEN_HEADER
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet import group, grpc_api, schema
from services.wallet.chart import TransferCode


async def adjust(house, amount, **given):
    command = c.AdjustBalance(
        given.get("id") or house.id(), "ann", "EUR", amount, given.get("reason", "a test"), given.get("approved_by", "")
    )
    return (await house.ledger.adjust_balance(command, caller="person/op")).amount_minor


async def test_a_correction_is_booked_against_the_account_of_adjustments(house, auditor, ledger_database):
    assert await adjust(house, 30) == 630
    assert await adjust(house, -50) == 580
    balance = schema.accounts.select().where(schema.accounts.c.account == "cashier/EUR/adjustments")
    row = await ledger_database[1].read(lambda conn: conn.execute(balance).one())
    assert row.balance == 20
    page = await house.ledger.list_entries(grpc_api.EntryQuery(player="ann", page_size=2))
    assert [(entry.code, entry.amount_minor) for entry in page.entries] == [
        (TransferCode.ADJUSTMENT, -50),
        (TransferCode.ADJUSTMENT, 30),
    ]
    assert (await auditor.audit()).clean


async def test_a_correction_takes_no_more_than_there_is_and_a_frozen_player_gets_theirs(house):
    await house.freeze("ann")
    with pytest.raises(Fault, match="holds 600, less than 601") as caught:
        await adjust(house, -601)
    assert caught.value.reason == "INSUFFICIENT_FUNDS"
    assert await adjust(house, -600) == 0
    assert await adjust(house, 7) == 7


async def test_a_correction_sent_twice_is_booked_once(house):
    assert [await adjust(house, 5, id="same") for _ in range(2)] == [605, 605]
    with pytest.raises(Fault) as caught:
        await adjust(house, 5, id="same", reason="another reason")
    assert (caught.value.reason, caught.value.metadata["field"]) == ("BATCH_CONFLICT", "reason")


async def test_a_correction_whose_answer_was_lost_may_be_approved_by_another(house, auditor, ledger_database):
    """It is booked once, under the name of who approved it first."""
    assert await adjust(house, 5, id="lost", approved_by="person/bob") == 605
    assert [await adjust(house, 5, id="lost", approved_by=name) for name in ("person/cy", "", "person/bob")] == [
        605
    ] * 3
    batch = schema.batches.select().where(schema.batches.c.batch_key == "person/op lost")
    row = await ledger_database[1].read(lambda conn: conn.execute(batch).one())
    assert json.loads(row.content)["approved_by"] == "person/bob"
    with pytest.raises(Fault) as caught:
        await adjust(house, 6, id="lost", approved_by="person/cy")
    assert (caught.value.reason, caught.value.metadata["field"]) == ("BATCH_CONFLICT", "amount_minor")
    assert (await auditor.audit()).clean


def test_a_correction_without_a_second_person_reads_as_it_did_before():
    """As earlier versions stored it, so that their batches are known again."""
    assert group.content_of(c.AdjustBalance("b", "ann", "EUR", 5, "why")) == (
        '{"batch_id":"b","player":"ann","currency":"EUR","amount_minor":5,"reason":"why"}'
    )


# first's roles, second's name and roles, the refusal
PAIRS = (
    (("operator",), None, "SECOND_PERSON_REQUIRED"),
    (("operator",), ("olga", "operator"), "SECOND_PERSON_REQUIRED"),
    (("finance",), ("pia", "player"), "SECOND_PERSON_REQUIRED"),
    (("finance",), ("aud", "auditor"), "SECOND_PERSON_REQUIRED"),
    (("auditor",), ("otto", "operator"), "PERMISSION_DENIED"),
    (("operator",), ("fay", "finance"), ""),
    (("finance",), ("otto", "operator"), ""),
)


@pytest.mark.parametrize("ledger_database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("roles", "second", "refusal"), PAIRS)
async def test_a_correction_takes_two_people_of_the_house(  # noqa: PLR0917 - fixtures go by name
    house, auditor, serve, make_settings, channel, token, ledger_database, roles, second, refusal
):
    server = await serve(make_settings(), partial(grpc_api.register, house.ledger, auditor))
    metadata = ((SECOND_TOKEN_HEADER, token(*second)),) if second else ()
    stub = pb_grpc.WalletServiceStub(channel(server, token=token("olga", *roles)))
    asked = pb.AdjustBalanceRequest(request_id="j", player="players/ann", currency="EUR", amount_minor=5, reason="why")
    if refusal:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.AdjustBalance(asked, metadata=metadata)
        assert Fault.from_rpc(caught.value).reason == refusal
    else:
        assert (await stub.AdjustBalance(asked, metadata=metadata)).balance.amount_minor == 605
        batch = schema.batches.select().where(schema.batches.c.batch_key == "person/olga j")
        row = await ledger_database[1].read(lambda conn: conn.execute(batch).one())
        assert json.loads(row.content)["approved_by"] == f"person/{second[0]}"
    cash = (await house.ledger.get_balances("ann")).cash[0].amount_minor
    assert cash == (600 if refusal else 605)
