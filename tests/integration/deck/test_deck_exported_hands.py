"""Hands with reshuffled discards, played in a running house and exported over its API, are proved to every reader."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import pytest
from click.testing import CliRunner
from fivedraw.history.v1 import history_service_pb2 as history
from fivedraw.table.v1 import table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw_client import Client, Endpoints, RefusedError

from services.cli.hand import hand_command, hands_command
from services.cli.verify import verify_command
from services.deck.verification import verify_text
from services.runtime.errors import Fault
from tests.integration.table.house import RunningHouse, next_id, until
from tests.unit.deck.javascript import verify_in_javascript

PLAYERS = ("ann", "bob", "cid", "dot", "eve", "fay")


async def seat_all(house: RunningHouse) -> None:
    """Six seats at one table, before its first hand begins."""
    await house.open_table("oak", "casadela", seats=6)
    asked = {"table": "tables/oak", "request_id": next_id()}
    await house.operator.PauseTable(pb.PauseTableRequest(**asked, reason="until all sit"))
    await house.seat("oak", *PLAYERS, buy_in=50_000)
    await house.operator.ResumeTable(pb.ResumeTableRequest(**asked | {"request_id": next_id()}))


async def play_and_exchange_all(house: RunningHouse, table: str) -> None:
    """All call and give up all their cards: thirty draws from a stub of twenty-two, so discards are shuffled.

    Returns when the hand is settled, whether another one follows or not.
    """
    player, view = await house.turn(table, PLAYERS)
    hand = view.hand
    while view.hand == hand:
        if view.your_actions.discard:
            await house.act(table, player, view, kind=table_pb2.ACTION_KIND_DISCARD, cards=view.your_cards)
        else:
            await house.act(table, player, view)
        turn = view.turn.turn

        async def following(turn: int = turn) -> tuple[str, table_pb2.TableView] | None:
            public = await house.view(table)
            # A table without a cut takes seeds only between hands.
            if public.hand > hand or public.seed_commitment:
                return "", table_pb2.TableView()
            for each in PLAYERS:
                seen = await house.view(table, each)
                if seen.HasField("your_actions") and seen.turn.turn > turn:
                    return each, seen
            return None

        player, view = await until(following)


async def exported(house: RunningHouse, who: str, role: str, hand: str, **options: Any) -> str:
    request = history.ExportHandRequest(name=hand, format=history.HAND_FORMAT_JSON, with_proof=True, **options)
    return (await house.history(who, role).ExportHand(request)).text


async def test_reshuffled_hands_are_proved_to_each_seat_the_public_and_an_auditor(house: RunningHouse) -> None:
    house.decks._seed_delay_ms = 0
    await seat_all(house)
    await play_and_exchange_all(house, "oak")
    await house.write_history()

    readers = [*((player, "player") for player in PLAYERS), ("olga", "operator"), ("ada", "auditor")]
    hands = {}
    for who, role in readers:
        text = await exported(house, who, role, "tables/oak/hands/1")
        hands[who] = hand = json.loads(text)
        assert "deck_reshuffled" in [event["type"] for event in hand["events"]]
        assert len(hand["proof"]["shuffles"]) > 1
        own = [seat for seat in hand["seats"] if seat["dealt"]]
        assert len(own) == {"player": 1, "operator": 0, "auditor": 6}[role]
        assert verify_text(text).failed == []
        assert verify_in_javascript(text)[-1].endswith(" 0 failed")
        assert bool(hand["proof"]["seed"]) is (role == "auditor")
        if role == "player":
            # Every card that this player held is opened, those shown to all, and nothing else.
            seen = {card for seat in hand["seats"] for card in (*seat["dealt"], *seat["drawn"], *seat["final_cards"])}
            assert {place["card"] for place in hand["proof"]["places"]} == seen
    assert_discards_are_opened_to_giver_and_taker(hands)


def assert_discards_are_opened_to_giver_and_taker(hands: dict[str, dict]) -> None:
    """A discard that somebody else drew is opened to each for its own deal."""
    mine = {who: next(seat for seat in hands[who]["seats"] if seat["dealt"]) for who in PLAYERS}
    twice = [
        (giver, taker, card)
        for giver in PLAYERS
        for taker in PLAYERS
        for card in mine[giver]["discarded"]
        if giver != taker and card in mine[taker]["drawn"]
    ]
    # Eight of the thirty cards drawn were discards.
    assert len(twice) == 8
    for giver, taker, card in twice:
        given, taken = ([p for p in hands[who]["proof"]["places"] if p["card"] == card] for who in (giver, taker))
        assert given[0]["shuffle"] == 0
        assert taken[-1]["shuffle"] == 1


async def test_a_range_of_hands_comes_with_proofs_that_follow_each_other(house: RunningHouse) -> None:
    await seat_all(house)
    for _ in range(2):
        await play_and_exchange_all(house, "oak")
    await house.write_history()
    request = history.ExportHandsRequest(format=history.HAND_FORMAT_JSON, with_proof=True)
    text = "".join([piece.text async for piece in house.history("ann", "player").ExportHands(request)])
    report = verify_text(text)
    assert report.failed == []
    assert "2 decks of tables/oak follow each other without a gap." in report.proved
    assert verify_in_javascript(text)[-1].endswith(" 0 failed")


async def test_the_command_writes_what_the_command_verifies(house: RunningHouse, token, tmp_path) -> None:
    await seat_all(house)
    await play_and_exchange_all(house, "oak")
    await house.write_history()
    reach = ["--target", f"127.0.0.1:{house.history_server.port}", "--token", token("ann", "player"), "--proof"]
    told = await asyncio.to_thread(CliRunner().invoke, hand_command, ["oak/1", *reach])
    assert told.exit_code == 0, told.output
    assert verify_text(told.output).failed == []
    path = tmp_path / "hands.jsonl"
    asked = ["--table", "oak", "--format", "json", "--out", str(path), *reach]
    assert (await asyncio.to_thread(CliRunner().invoke, hands_command, asked)).exit_code == 0
    verified = CliRunner().invoke(verify_command, [str(path)])
    assert (verified.exit_code, verified.output.splitlines()[-1].endswith(" 0 failed")) == (0, True)
    refused = await asyncio.to_thread(CliRunner().invoke, hand_command, ["oak/1", "--format", "text", *reach])
    assert (refused.exit_code, "--proof goes with --format json" in refused.output) == (2, True)
    asked[-1:] = ["--out", str(tmp_path / "nowhere" / "hands.jsonl")]
    refused = await asyncio.to_thread(CliRunner().invoke, hands_command, asked)
    assert (refused.exit_code, "cannot be written" in refused.output) == (1, True)


async def test_a_players_own_seed_goes_into_the_shuffle_and_its_proof(house: RunningHouse, token) -> None:
    house.decks._seed_delay_ms = 0
    await seat_all(house)
    await house.turn("oak", PLAYERS)
    asked = {"table": "tables/oak", "reason": "between hands", "after_hand": True}
    await house.operator.PauseTable(pb.PauseTableRequest(**asked, request_id=next_id()))
    await play_and_exchange_all(house, "oak")
    target = f"127.0.0.1:{house.processes[0].server.port}"
    endpoints = Endpoints(target, target, f"127.0.0.1:{house.history_server.port}")
    async with Client(endpoints, token("ann", "player"), player="players/ann") as ann:
        commitment = (await ann.get_table("tables/oak")).seed_commitment
        assert await ann.set_player_seed("tables/oak", b"a coin that I threw", commitment=commitment) == 2
        await house.operator.ResumeTable(pb.ResumeTableRequest(table="tables/oak", request_id=next_id()))
        await play_and_exchange_all(house, "oak")
        with pytest.raises(RefusedError) as caught:
            await ann.set_player_seed("tables/oak", b"too late", commitment=commitment)
        assert caught.value.reason == "COMMITMENT_NOT_OPEN"
        await house.write_history()
        mine = await ann.export_hand("tables/oak/hands/2", history.HAND_FORMAT_JSON, with_proof=True)
    given = {"seat": 1, "seed": b"a coin that I threw".hex()}
    assert json.loads(mine)["proof"]["player_seeds"] == [given]
    assert json.loads(mine)["proof"]["commitment"] == commitment.hex()
    told = "No cut and the seeds of seats 1 were told with the root, before the first card."
    whole = await exported(house, "ada", "auditor", "tables/oak/hands/2")
    for text in (mine, whole):
        report = verify_text(text)
        assert report.failed == []
        assert told in report.proved
        assert f"proved      {told}" in verify_in_javascript(text)
        assert verify_in_javascript(text)[-1].endswith(" 0 failed")
    assert "Every shuffle and every card of the hand follow from the committed seed." in verify_text(whole).proved


async def test_formats_without_room_for_a_proof_refuse_it(house: RunningHouse) -> None:
    request = history.ExportHandRequest(name="tables/oak/hands/1", format=history.HAND_FORMAT_TEXT, with_proof=True)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await house.history("ann", "player").ExportHand(request)
    fault = Fault.from_rpc(caught.value)
    assert (fault.reason, fault.metadata["field"]) == ("INVALID_REQUEST", "with_proof")
