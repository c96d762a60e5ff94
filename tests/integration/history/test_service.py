"""`HistoryService` behind the house's gate: who reads what (RULES 3.8), and what each mistake is answered with."""

from __future__ import annotations

import json
import random

import grpc
import pytest
import pytest_asyncio
from fivedraw.history.v1 import history_service_pb2 as pb
from fivedraw.history.v1 import history_service_pb2_grpc as pb_grpc

from services.cli.scenario import run_scenario
from services.history.grpc_api import add_to
from services.history.reading import HandReader
from services.history.writing import FinishedHand, HandLog, HandWriter
from services.rules.commands import Act, Discard
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.errors import Fault
from tests.unit.history.played import SEALER, play, void

STACKS = {1: 5000, 2: 5000, 3: 5000}
# Seat 1 deals. All call; all stand pat; seat 2 bets and shows, seat 3 calls, seat 1 folds after the draw.
SCRIPT = [
    Act(1, "call"), Act(2, "call"), Act(3, "check"),
    Discard(2), Discard(3), Discard(1),
    Act(2, "bet", 40), Act(3, "call"), Act(1, "fold"),
]  # fmt: skip


class MemoryLog:
    """A table's log in memory."""

    def __init__(self) -> None:
        self.logs: dict[FinishedHand, HandLog] = {}
        self.confirmed: list[FinishedHand] = []

    async def read(self, hand: FinishedHand) -> HandLog | None:
        return self.logs.get(hand)

    async def confirm(self, hand: FinishedHand) -> None:
        self.confirmed.append(hand)
        self.logs.pop(hand, None)

    async def list_unwritten(self, older_than_seconds: int, limit: int) -> list[FinishedHand]:
        return list(self.logs)[:limit]


def _mucked_hand():
    """A hand in which one seat shows, one mucks at the showdown and one folds after the draw."""
    for seed in range(100):
        played = play(random.Random(seed), stacks=STACKS, button=1, hand=1, script=list(SCRIPT))
        if played.state.mucked:
            return played
    raise AssertionError("no such hand")


@pytest_asyncio.fixture
async def house(sqlite_url, make_settings, serve, channel, token):
    """`house.stub("p1", "player")` reads as somebody; four hands are written."""
    opened = Database(sqlite_url)
    await opened.migrate("history")
    log = MemoryLog()
    writer = HandWriter(opened, log, SystemClock())
    played = [
        _mucked_hand(),
        play(random.Random(7), stacks=STACKS, button=1, hand=2),
        play(random.Random(8), "openers", hand=3, table="tables/blue"),
        void(random.Random(9), hand=4),
    ]
    for each in played:
        log.logs[each.finished] = each.hand_log
        await writer.write_hand(each.finished)

    class House:
        hands = played
        database = opened
        confirmed = log.confirmed

        @staticmethod
        async def stub(subject: str, *roles: str, delay_ms: int = 0) -> pb_grpc.HistoryServiceStub:
            reader = HandReader(opened, SEALER, SystemClock(), audit_delay_ms=delay_ms)
            server = await serve(make_settings(), lambda server: add_to(server, reader), name="history")
            return pb_grpc.HistoryServiceStub(channel(server, token=token(subject, *roles)))

    yield House
    await opened.close()


async def _refused(call) -> Fault:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    fault = Fault.from_rpc(caught.value)
    assert fault is not None, caught.value
    return fault


def _by_seat(hand: pb.Hand) -> dict[int, pb.HandSeat]:
    return {seat.seat: seat for seat in hand.seats}


async def test_each_viewer_sees_the_cards_that_are_its_right(house) -> None:
    played = house.hands[0]
    name = pb.GetHandRequest(name="tables/red/hands/1")
    (mucked,) = [played.state.seats[position] for position in played.state.mucked]
    (shown,) = [played.state.seats[position] for position in played.state.shown]
    folded = ({1, 2, 3} - {mucked, shown}).pop()

    owner = _by_seat((await (await house.stub(f"p{folded}", "player")).GetHand(name)).hand)
    assert len(owner[folded].dealt) == 5
    assert len(owner[mucked].final_cards) == 5, "a hand mucked at the showdown is read by who was dealt in"
    assert not owner[mucked].dealt
    assert len(owner[shown].final_cards) == 5

    for subject, roles in (("p9", ("player",)), ("op", ("operator",)), ("fin", ("finance",))):
        seen = _by_seat((await (await house.stub(subject, *roles)).GetHand(name)).hand)
        assert not seen[mucked].final_cards, "mucked cards are not for everybody"
        assert not seen[folded].final_cards
        assert len(seen[shown].final_cards) == 5

    other = _by_seat((await (await house.stub(f"p{mucked}", "player")).GetHand(name)).hand)
    assert not other[folded].final_cards, "a folded hand is its owner's alone"

    auditor = (await (await house.stub("aud", "auditor")).GetHand(name)).hand
    assert all(len(seat.dealt) == 5 for seat in auditor.seats)


async def test_an_auditor_waits_for_the_delay_and_every_reading_is_noted(house) -> None:
    early = await house.stub("aud", "auditor", delay_ms=10**15)
    hand = (await early.GetHand(pb.GetHandRequest(name="tables/red/hands/1"))).hand
    assert not any(seat.dealt for seat in hand.seats)
    fault = await _refused(
        early.ExportHand(pb.ExportHandRequest(name="tables/red/hands/1", format=pb.HAND_FORMAT_SCENARIO))
    )
    assert fault.reason == "SEED_NOT_DUE"
    pieces = [piece async for piece in early.ExportHands(pb.ExportHandsRequest(format=pb.HAND_FORMAT_SCENARIO))]
    assert sum(piece.hands for piece in pieces) == 0
    assert sum(piece.left_out for piece in pieces) == 4, (
        "hands that are not due are left out of a range, not fatal to it"
    )
    assert not (await early.ListAuditReads(pb.ListAuditReadsRequest())).reads

    due = await house.stub("aud", "auditor")
    await due.GetHand(pb.GetHandRequest(name="tables/red/hands/1"))
    await due.ExportHand(pb.ExportHandRequest(name="tables/red/hands/2", format=pb.HAND_FORMAT_SCENARIO))
    first = await due.ListAuditReads(pb.ListAuditReadsRequest(page_size=1))
    assert [(read.reader, read.hand) for read in first.reads] == [("aud", "tables/red/hands/2")]
    rest = await due.ListAuditReads(pb.ListAuditReadsRequest(page_size=1, page_token=first.next_page_token))
    assert [(read.hand, read.purpose) for read in rest.reads] == [("tables/red/hands/1", "GetHand")]


async def test_scenarios_are_an_auditors_and_pass(house) -> None:
    player = await house.stub("p1", "player")
    request = pb.ExportHandRequest(name="tables/red/hands/1", format=pb.HAND_FORMAT_SCENARIO)
    assert (await _refused(player.ExportHand(request))).reason == "PERMISSION_DENIED"
    auditor = await house.stub("aud", "auditor")
    assert run_scenario(json.loads((await auditor.ExportHand(request)).text)) == []
    lines = ""
    left_out = 0
    async for piece in auditor.ExportHands(pb.ExportHandsRequest(format=pb.HAND_FORMAT_SCENARIO)):
        lines += piece.text
        left_out += piece.left_out
    assert [run_scenario(json.loads(line)) for line in lines.splitlines()] == [[], [], []]
    assert left_out == 1, "the void hand has no words in this format"


async def test_a_player_lists_its_own_hands_only(house) -> None:
    player = await house.stub("p1", "player")
    mine = await player.ListHands(pb.ListHandsRequest())
    assert "tables/red/hands/1" in [hand.name for hand in mine.hands]
    assert [hand.end_time.ToMilliseconds() for hand in mine.hands] == sorted(
        (hand.end_time.ToMilliseconds() for hand in mine.hands), reverse=True
    )
    fault = await _refused(player.ListHands(pb.ListHandsRequest(player="players/p2")))
    assert fault.reason == "PERMISSION_DENIED"
    assert (await _refused(player.GetPlayerStatistics(pb.GetPlayerStatisticsRequest(player="players/p2")))).reason == (
        "PERMISSION_DENIED"
    )
    operator = await house.stub("op", "operator")
    every = await operator.ListHands(pb.ListHandsRequest())
    assert len(every.hands) == 4
    blue = await operator.ListHands(pb.ListHandsRequest(table="tables/blue"))
    assert [hand.name for hand in blue.hands] == ["tables/blue/hands/3"]


async def test_statistics_add_up_with_the_list(house) -> None:
    player = await house.stub("p1", "player")
    listed = await player.ListHands(pb.ListHandsRequest())
    counted = [hand for hand in listed.hands if hand.outcome != 4]
    found = await player.GetPlayerStatistics(pb.GetPlayerStatisticsRequest())
    assert sum(each.hands for each in found.statistics) == len(counted)
    assert sum(each.net_minor for each in found.statistics) == sum(hand.net_minor for hand in counted)


async def test_a_range_is_exported_oldest_first_in_each_format(house) -> None:
    player = await house.stub("p2", "player")
    texts = {}
    for form in (pb.HAND_FORMAT_TEXT, pb.HAND_FORMAT_TRACKER, pb.HAND_FORMAT_JSON, pb.HAND_FORMAT_PHH):
        pieces = [piece async for piece in player.ExportHands(pb.ExportHandsRequest(format=form, table="tables/red"))]
        texts[form] = "".join(piece.text for piece in pieces)
    numbers = [json.loads(line)["hand"] for line in texts[pb.HAND_FORMAT_JSON].splitlines()]
    ended = [json.loads(line)["end_time"] for line in texts[pb.HAND_FORMAT_JSON].splitlines()]
    assert ended == sorted(ended)
    assert texts[pb.HAND_FORMAT_TRACKER].count("PokerStars Hand #") == len([n for n in numbers if n != 4])
    limited = [
        piece async for piece in player.ExportHands(pb.ExportHandsRequest(format=pb.HAND_FORMAT_JSON, max_hands=1))
    ]
    assert sum(piece.hands for piece in limited) == 1


async def test_a_replay_begins_with_the_table_before_the_hand(house) -> None:
    player = await house.stub("p2", "player")
    messages = [m async for m in player.ReplayHand(pb.ReplayHandRequest(name="tables/red/hands/1"))]
    assert [seat.stack_minor for seat in messages[0].snapshot.seats] == [5000, 5000, 5000]
    assert messages[0].snapshot.your_seat == 2
    assert messages[1].events[0].HasField("hand_started")
    assert all(not message.HasField("snapshot") for message in messages[1:])


@pytest.mark.parametrize(
    "name",
    ["", "x", "tables/red", "tables/red/hands/0", "tables/red/hands/-1", "tables/red/hands/" + "9" * 19,
     "tables/" + "a" * 3000 + "/hands/1", "tables/RED/hands/1", "tables/red/hands/1\n"],
)  # fmt: skip
async def test_garbage_names_get_a_typed_error(house, name) -> None:
    player = await house.stub("p1", "player")
    for call in (
        player.GetHand(pb.GetHandRequest(name=name)),
        player.ExportHand(pb.ExportHandRequest(name=name, format=pb.HAND_FORMAT_TEXT)),
    ):
        assert (await _refused(call)).reason == "INVALID_REQUEST"


async def test_other_garbage_gets_a_typed_error_too(house) -> None:
    operator = await house.stub("op", "operator")
    wrong_time = pb.ListHandsRequest()
    wrong_time.from_time.seconds = -5
    far_time = pb.ListHandsRequest()
    far_time.to_time.seconds = 2**62
    for request in (
        pb.ListHandsRequest(page_size=-1),
        pb.ListHandsRequest(page_size=201),
        pb.ListHandsRequest(page_token="garbage"),
        pb.ListHandsRequest(table="red"),
        pb.ListHandsRequest(player="players/"),
        pb.ListHandsRequest(rulebook="house"),
        pb.ListHandsRequest(min_pot_minor=-1),
        pb.ListHandsRequest(min_pot_minor=5, max_pot_minor=4),
        wrong_time,
        far_time,
    ):
        assert (await _refused(operator.ListHands(request))).reason == "INVALID_REQUEST", request
    hand = "tables/red/hands/1"
    assert (await _refused(operator.ExportHand(pb.ExportHandRequest(name=hand)))).reason == "INVALID_REQUEST"
    missing = pb.GetHandRequest(name="tables/red/hands/99")
    assert (await _refused(operator.GetHand(missing))).reason == "HAND_NOT_FOUND"
    void_hand = pb.ExportHandRequest(name="tables/red/hands/4", format=pb.HAND_FORMAT_TRACKER)
    assert (await _refused(operator.ExportHand(void_hand))).reason == "FORMAT_CANNOT_EXPRESS"
    assert (await _refused(operator.ListAuditReads(pb.ListAuditReadsRequest()))).reason == "PERMISSION_DENIED"


async def test_a_hand_is_confirmed_after_its_row_is_there(house) -> None:
    assert house.confirmed == [played.finished for played in house.hands]
