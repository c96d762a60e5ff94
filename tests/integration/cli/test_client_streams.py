"""The Python client against a table that breaks connections on purpose, behind the house's real gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2, table_service_pb2_grpc
from fivedraw_client import (
    Client,
    ConflictError,
    Endpoints,
    InvalidRequestError,
    NotAllowedError,
    RefusedError,
    RetryPolicy,
    StaleError,
    UnavailableError,
)

from services.runtime.auth import current_identity
from services.runtime.errors import Fault

QUICK = RetryPolicy(attempts=5, first_delay=0.001, last_delay=0.01)
Update = table_service_pb2.WatchTableResponse


def snapshot(epoch: int, sequence: int, **more) -> Update:
    return Update(snapshot=table_pb2.TableView(table=table_pb2.Table(epoch=epoch), sequence=sequence, **more))


def turn(epoch: int, sequence: int) -> Update:
    body = event_pb2.TurnStarted(turn=table_pb2.Turn(seat=1, turn=sequence))
    return Update(events=[event_pb2.TableEvent(epoch=epoch, sequence=sequence, turn_started=body)])


@dataclass
class ScriptedTable(table_service_pb2_grpc.TableServiceServicer):
    """Each connection sends its own part of the script; a `Fault` in it ends the connection so."""

    script: list[list[Update | Fault]] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    actions: list[tuple[str, int]] = field(default_factory=list)
    answers: list[Fault | int] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)

    async def WatchTable(self, request, context) -> AsyncIterator[Update]:
        self.asked.append((request.epoch, request.resume_after))
        for part in self.script.pop(0):
            if isinstance(part, Fault):
                raise part
            yield part
        await asyncio.Event().wait()

    async def SubmitAction(self, request, context) -> table_service_pb2.SubmitActionResponse:
        self.callers.append(current_identity().player)
        self.actions.append((request.action_id, request.turn))
        answer = self.answers.pop(0)
        if isinstance(answer, Fault):
            raise answer
        return table_service_pb2.SubmitActionResponse(sequence=answer)

    async def Play(self, requests, context) -> AsyncIterator[table_service_pb2.PlayResponse]:
        first = await anext(requests)
        self.asked.append((first.watch.epoch, first.watch.resume_after))
        for part in self.script.pop(0):
            if isinstance(part, Fault):
                raise part
            yield table_service_pb2.PlayResponse(update=part)
        async for request in requests:
            self.actions.append((request.action.action_id, request.action.turn))
            answer = self.answers.pop(0)
            if answer == 0:
                raise Fault("SERVICE_UNAVAILABLE", "this process is stopping")
            if isinstance(answer, Fault):
                refused = table_service_pb2.ActionRefused(
                    action_id=request.action.action_id,
                    reason=answer.reason,
                    message=answer.message,
                    metadata=answer.metadata,
                )
                yield table_service_pb2.PlayResponse(refused=refused)
            else:
                accepted = table_service_pb2.ActionAccepted(action_id=request.action.action_id, sequence=answer)
                yield table_service_pb2.PlayResponse(accepted=accepted)


@pytest.fixture
async def table(serve, make_settings, token) -> AsyncIterator[tuple[ScriptedTable, Callable[..., Client]]]:
    servicer = ScriptedTable()

    def register(server) -> list[str]:
        table_service_pb2_grpc.add_TableServiceServicer_to_server(servicer, server)
        return ["fivedraw.table.v1.TableService"]

    running = await serve(make_settings(), register)
    opened: list[Client] = []

    def client(subject: str = "alice", role: str = "player") -> Client:
        made = Client(
            Endpoints.single(f"127.0.0.1:{running.port}"),
            token(subject, role),
            player=f"players/{subject}",
            policy=QUICK,
        )
        opened.append(made)
        return made

    yield servicer, client
    for made in opened:
        await made.close()


async def take(stream, count: int) -> list[Update]:
    taken = []
    async for update in stream:
        taken.append(update)
        if len(taken) == count:
            break
    return taken


FOLD = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_FOLD)
GONE = Fault("SERVICE_UNAVAILABLE", "this process is stopping")


async def test_a_stream_resumes_after_the_last_event_it_has(table):
    servicer, client = table
    servicer.script = [[snapshot(3, 10), turn(3, 11), GONE], [GONE], [turn(3, 12)]]
    stream = client().watch("tables/t")
    updates = await take(stream, 3)
    assert [event.sequence for update in updates for event in update.events] == [11, 12]
    assert servicer.asked == [(0, 0), (3, 11), (3, 11)]
    assert stream.violations == []
    assert stream.reconnects == 2
    assert stream.mirror.view.turn.turn == 12


async def test_a_slow_watcher_resumes_too(table):
    servicer, client = table
    slow = Fault("SLOW_CONSUMER", "the stream was read too slowly", resume_after="11")
    servicer.script = [[snapshot(1, 10), turn(1, 11), slow], [turn(1, 12)]]
    await take(client().watch("tables/t"), 3)
    assert servicer.asked == [(0, 0), (1, 11)]


async def test_a_gap_is_noticed_kept_and_repaired_from_the_last_good_event(table):
    servicer, client = table
    servicer.script = [[snapshot(1, 10), turn(1, 12)], [turn(1, 11), turn(1, 12)]]
    stream = client().watch("tables/t")
    updates = await take(stream, 3)
    assert [event.sequence for update in updates for event in update.events] == [11, 12]
    assert servicer.asked == [(0, 0), (1, 10)]
    assert [str(violation) for violation in stream.violations] == ["the sequence has a gap: held 1/10, got 1/12"]


async def test_a_new_epoch_comes_with_a_snapshot(table):
    servicer, client = table
    servicer.script = [
        [snapshot(1, 10), snapshot(2, 1, reason="rebuilt from the ledger"), turn(2, 2), GONE],
        [turn(2, 3)],
    ]
    stream = client().watch("tables/t")
    await take(stream, 4)
    assert servicer.asked == [(0, 0), (2, 2)]
    assert stream.violations == []


async def test_a_stream_that_never_comes_back_ends_with_its_error(table):
    servicer, client = table
    servicer.script = [[snapshot(1, 10)], *([GONE] for _ in range(9))]
    servicer.script[0].append(GONE)
    with pytest.raises(UnavailableError) as failure:
        await take(client().watch("tables/t"), 5)
    assert failure.value.reason == "SERVICE_UNAVAILABLE"
    assert len(servicer.asked) == QUICK.attempts


async def test_a_refusal_for_good_ends_a_stream_at_once(table):
    servicer, client = table
    servicer.script = [[Fault("TABLE_NOT_FOUND", "there is no tables/t")]]
    with pytest.raises(Exception, match="TABLE_NOT_FOUND"):
        await take(client().watch("tables/t"), 1)
    assert len(servicer.asked) == 1


async def test_an_action_is_repeated_with_the_same_id(table):
    servicer, client = table
    servicer.answers = [GONE, GONE, 17]
    assert await client().act("tables/t", FOLD, hand=4, turn=9) == 17
    assert len({action_id for action_id, _ in servicer.actions}) == 1
    assert len(servicer.actions) == 3
    assert set(servicer.callers) == {"players/alice"}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault("NOT_YOUR_TURN", "seat 2 is to act", seat="2"), RefusedError),
        (Fault("STALE_TURN", "turn 9 is over"), StaleError),
        (Fault("BELOW_MINIMUM", "at least 20", least_minor="20"), InvalidRequestError),
        (Fault("ACTION_CONFLICT", "other content"), ConflictError),
    ],
)
async def test_refusals_are_typed_and_carry_their_facts_on_both_ways(table, fault, expected):
    servicer, client = table
    servicer.answers = [fault, fault]
    with pytest.raises(expected) as failure:
        await client().act("tables/t", FOLD, hand=4, turn=9)
    assert (failure.value.reason, failure.value.facts) == (fault.reason, fault.metadata)

    servicer.script = [[snapshot(1, 10)]]
    async with client().play("tables/t") as stream:
        reading = asyncio.create_task(take(stream, 2))
        await until(lambda: stream.keeper.position is not None)
        with pytest.raises(expected) as failure:
            await stream.act(FOLD, hand=4, turn=9)
        reading.cancel()
    assert (failure.value.reason, failure.value.facts) == (fault.reason, fault.metadata)


async def test_an_action_on_a_stream_that_breaks_is_sent_again_on_the_next(table):
    servicer, client = table
    servicer.script = [[snapshot(1, 10)], [turn(1, 11)]]
    servicer.answers = [0, 12]
    async with client().play("tables/t") as stream:
        reading = asyncio.create_task(take(stream, 3))
        await until(lambda: stream.keeper.position is not None)
        assert await stream.act(FOLD, hand=4, turn=9) == 12
        reading.cancel()
    assert len(servicer.actions) == 2
    assert len({action_id for action_id, _ in servicer.actions}) == 1
    assert servicer.asked == [(0, 0), (1, 10)]


async def test_what_may_pass_is_tried_again_over_the_same_stream(table):
    servicer, client = table
    away = Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach")
    servicer.script = [[snapshot(1, 10)]]
    servicer.answers = [away, away, 12]
    async with client().play("tables/t") as stream:
        reading = asyncio.create_task(take(stream, 2))
        await until(lambda: stream.keeper.position is not None)
        assert await stream.act(FOLD, hand=4, turn=9) == 12
        reading.cancel()
    assert len(servicer.actions) == 3
    assert len({action_id for action_id, _ in servicer.actions}) == 1
    assert servicer.asked == [(0, 0)]


async def test_what_never_passes_is_told_after_as_many_tries_as_allowed(table):
    servicer, client = table
    servicer.script = [[snapshot(1, 10)]]
    servicer.answers = [Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach")] * 9
    async with client().play("tables/t") as stream:
        reading = asyncio.create_task(take(stream, 2))
        await until(lambda: stream.keeper.position is not None)
        with pytest.raises(UnavailableError) as failure:
            await stream.act(FOLD, hand=4, turn=9)
        reading.cancel()
    assert failure.value.reason == "SERVICE_UNAVAILABLE"
    assert len(servicer.actions) == QUICK.attempts


async def test_who_may_not_call_is_told_so(table):
    _, client = table
    with pytest.raises(NotAllowedError) as failure:
        await client("olga", "operator").act("tables/t", FOLD, hand=1, turn=1)
    assert failure.value.reason == "PERMISSION_DENIED"


def test_a_token_does_not_travel_in_the_clear():
    with pytest.raises(ValueError, match="only travel there over TLS"):
        Endpoints.single("casino.example:443").channel("casino.example:443")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what it waits for is plain state of the client
            await asyncio.sleep(0.005)
