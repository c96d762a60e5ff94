"""The `Play` stream: actions in, own events out, the answer merged into the own event."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.table.v1 import table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from google.protobuf.duration_pb2 import Duration

from services.table import watch
from services.table.play_stream import PlayStream
from tests.integration.table.house import RunningHouse, next_id
from tests.integration.table.watching import Playing, playing

SLOW = {"cut": False, "action_clock": Duration(seconds=120)}


async def seated(house: RunningHouse) -> None:
    await house.open_table("oak", **SLOW)
    await house.seat("oak", "ann", "bob")


async def own_turn(stream: Playing) -> pb.SubmitActionRequest:
    """Waits for the stream's own turn and returns the least action that goes on."""

    def told():
        for event in reversed(stream.events):
            body = event.WhichOneof("body")
            if body in ("action_taken", "cards_discarded", "hand_ended"):
                return None
            if body == "turn_started" and event.turn_started.HasField("your_actions"):
                return event.hand, event.turn_started
        return None

    hand, turn = await stream.until(told)
    kind = table_pb2.ACTION_KIND_CHECK if turn.your_actions.check else table_pb2.ACTION_KIND_CALL
    return pb.SubmitActionRequest(hand=hand, turn=turn.turn.turn, action_id=next_id(), action=pb.Action(kind=kind))


async def acting_stream(house: RunningHouse, ann: Playing, bob: Playing) -> Playing:
    player, _ = await house.turn("oak", ["ann", "bob"])
    return ann if player == "ann" else bob


async def test_an_accepted_action_is_told_with_its_own_event(house) -> None:
    await house.open_table("oak", **SLOW)
    async with playing(house.stub("ann"), "oak") as ann, playing(house.stub("bob"), "oak") as bob:
        for stream in (ann, bob):
            await stream.until(lambda stream=stream: stream.snapshots)
        await house.seat("oak", "ann", "bob")
        stream = await acting_stream(house, ann, bob)
        action = await own_turn(stream)
        await stream.send(action)
        await stream.until(lambda: stream.accepted)
        assert stream.accepted == [(action.action_id, stream.accepted[0][1], True)]
        own = next(event for event in stream.events if event.sequence == stream.accepted[0][1])
        assert (own.WhichOneof("body"), own.action_taken.turn) == ("action_taken", action.turn)
        other = bob if stream is ann else ann
        await other.until(lambda: "action_taken" in other.bodies())
        assert other.accepted == []
        assert ann.gaps == bob.gaps == []
        # The same action again is told the first answer, once more and by itself.
        await stream.send(action)
        await stream.until(lambda: len(stream.accepted) == 2)
        assert stream.accepted[1] == (action.action_id, stream.accepted[0][1], False)


async def test_a_refused_action_leaves_the_stream_open(house) -> None:
    await house.open_table("oak", **SLOW)
    async with playing(house.stub("ann"), "oak") as ann, playing(house.stub("bob"), "oak") as bob:
        for each in (ann, bob):
            await each.until(lambda each=each: each.snapshots)
        await house.seat("oak", "ann", "bob")
        stream = await acting_stream(house, ann, bob)
        action = await own_turn(stream)
        stale = pb.SubmitActionRequest.FromString(action.SerializeToString())
        stale.turn, stale.action_id = 999, next_id()
        elsewhere = pb.SubmitActionRequest.FromString(action.SerializeToString())
        elsewhere.table, elsewhere.action_id = "tables/elm", next_id()
        for refused, reason in ((stale, "STALE_TURN"), (elsewhere, "INVALID_REQUEST")):
            await stream.send(refused)
            await stream.until(
                lambda refused=refused: any(each.action_id == refused.action_id for each in stream.refused)
            )
            assert stream.refused[-1].reason == reason
            assert stream.refused[-1].message
        await stream.send(action)
        await stream.until(lambda: stream.accepted)


async def test_the_answer_comes_after_the_client_has_closed_its_side(house) -> None:
    await house.open_table("oak", **SLOW)
    async with playing(house.stub("ann"), "oak") as ann, playing(house.stub("bob"), "oak") as bob:
        for each in (ann, bob):
            await each.until(lambda each=each: each.snapshots)
        await house.seat("oak", "ann", "bob")
        stream = await acting_stream(house, ann, bob)
        action = await own_turn(stream)
        await stream.send(action)
        await stream.half_close()
        await stream.until(lambda: stream.accepted)
        assert stream.accepted[0][0] == action.action_id
        assert await stream.call.code() is not None
        assert stream.ended is None, "the end is an orderly one"


@pytest.mark.parametrize("first", [True, False])
async def test_messages_out_of_order_end_the_stream(house, first) -> None:
    await house.open_table("oak")
    stream = Playing(house.stub("ann").Play())
    watch_it = pb.PlayRequest(watch=pb.WatchTableRequest(table="tables/oak"))
    await stream.send(pb.PlayRequest() if first else watch_it)
    if not first:
        await stream.send(watch_it)
    await stream.read(stream.call, stream.note_play)
    assert stream.ended is not None
    assert stream.ended.reason == "INVALID_REQUEST"


async def test_a_stream_that_says_nothing_is_refused(house) -> None:
    stream = Playing(house.stub("ann").Play())
    await stream.half_close()
    await stream.read(stream.call, stream.note_play)
    assert stream.ended.reason == "INVALID_REQUEST"


async def test_both_streams_of_a_hand_played_on_two_processes_hear_each_other(open_house, monkeypatch) -> None:
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 600)  # pub/sub alone may bring the other's actions
    house = await open_house(processes=2)
    await seated(house)
    async with (
        playing(house.stub("ann", process=0), "oak") as ann,
        playing(house.stub("bob", process=1), "oak") as bob,
    ):
        for stream in (ann, bob):
            await stream.until(lambda stream=stream: stream.snapshots)
        # Until both connections are subscribed, a commit may be missed; from then on the log fills any gap.
        for _ in range(6):
            player, view = await house.turn("oak", ["ann", "bob"])
            stream = ann if player == "ann" else bob
            action = house.action("oak", view)
            await stream.send(action)
            await stream.until(lambda stream=stream, action=action: action.action_id in [e[0] for e in stream.accepted])
        last = (await house.view("oak")).sequence
        assert last > 0
        for stream in (ann, bob):
            assert stream.gaps == []
            assert stream.refused == []


async def test_an_accepted_action_of_an_epoch_that_is_over_is_answered_with_the_new_snapshot() -> None:
    """What the table lost is told as accepted all the same, since it was; the snapshot says what came of it."""
    stream = PlayStream(None, None)  # type: ignore[arg-type]
    stream._epoch, stream._sent = 1, 7
    stream._accepted = {
        8: pb.ActionAccepted(action_id="a", sequence=8, epoch=1),
        9: pb.ActionAccepted(action_id="b", sequence=9, epoch=1),
    }
    snapshot = table_pb2.TableView(table=table_pb2.Table(epoch=2), sequence=1)
    told = stream._merged(pb.PlayResponse(update=pb.WatchTableResponse(snapshot=snapshot)))
    assert [each.accepted.action_id for each in told] == ["a", "b"]
    assert stream._accepted == {}


async def test_a_mistake_of_the_house_ends_the_stream_instead_of_hanging_it() -> None:
    async def view(_request):
        async def broken():
            raise RuntimeError("a mistake")
            yield

        return broken()

    async def incoming():
        yield pb.PlayRequest(watch=pb.WatchTableRequest(table="tables/oak"))
        await never.wait()

    never = asyncio.Event()
    with pytest.raises(RuntimeError, match="a mistake"):
        async for _ in PlayStream(None, view).run(incoming()):  # type: ignore[arg-type]
            pass
