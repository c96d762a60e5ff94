"""One action is one trace, through table, wallet, deck and the task of its history; and a trace holds no secret."""

from __future__ import annotations

import asyncio
import json
import re

import grpc
import pytest
from celery.contrib.testing.worker import start_worker
from fivedraw.table.v1 import table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.runtime import subjects, telemetry, tracing
from services.runtime.tasks import WRITE_HAND, WRITE_HANDS, CelerySender, make_app
from tests.card_search import single_cards

ATTRIBUTES = {"fivedraw.table", "fivedraw.hand", "fivedraw.reason"}


@pytest.fixture
def spans():
    """Everything that is traced while the test runs, in the order of its end."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)
    yield exporter.get_finished_spans
    tracing.use(None)


def of_trace(spans, trace_id):
    return [span for span in spans() if span.context.trace_id == trace_id]


def names(spans) -> set[str]:
    return {span.name for span in spans}


async def fold(house, spans) -> list:
    """The last action of a hand, which makes the house pay out; the spans of its trace."""
    await house.open_table("oak")
    await house.seat("oak", "ann", "bob")
    player, view = await house.turn("oak", ["ann", "bob"])
    while not view.your_actions.fold:
        await house.act("oak", player, view)
        player, view = await house.turn("oak", ["ann", "bob"], view.turn.turn)
    before = {span.context.span_id for span in spans()}
    await house.act("oak", player, view, kind=table_pb2.ACTION_KIND_FOLD)

    def roots() -> list:
        return [
            span
            for span in spans()
            if span.name.endswith("/SubmitAction") and span.kind.name == "SERVER" and span.context.span_id not in before
        ]

    async with asyncio.timeout(20):
        while True:
            found = roots()
            trace = of_trace(spans, found[0].context.trace_id) if found else []
            if "effect WriteHistory" in names(trace):
                return trace
            await asyncio.sleep(0.02)


async def test_an_action_is_one_trace_through_table_wallet_and_deck(house, spans):
    trace = await fold(house, spans)
    assert {
        "fivedraw.table.v1.TableService/SubmitAction",
        "act",
        "effect SettleHand",
        "fivedraw.wallet.v1.TableLedgerService/AwardPot",
        "fivedraw.deck.v1.DeckService/CloseDeck",
        "effect WriteHistory",
    } <= names(trace)
    by_id = {span.context.span_id: span for span in trace}
    (award,) = [span for span in trace if span.name.endswith("AwardPot") and span.kind.name == "SERVER"]
    way = []
    while award is not None:
        way.append((award.name.rpartition("/")[2], award.kind.name))
        award = by_id.get(award.parent.span_id) if award.parent else None
    assert way == [
        ("AwardPot", "SERVER"),
        ("AwardPot", "CLIENT"),
        ("effect SettleHand", "INTERNAL"),
        ("act", "INTERNAL"),
        ("SubmitAction", "SERVER"),
    ]


async def test_no_span_holds_a_card_a_token_or_a_message(house, spans):
    await fold(house, spans)
    bad = pb.Action(kind=table_pb2.ACTION_KIND_DISCARD, cards=["As", "Kd"])
    asked = pb.SubmitActionRequest(table="tables/oak", hand=1, turn=1, action_id="late", action=bad)
    with pytest.raises(grpc.aio.AioRpcError):
        await house.stub("ann").SubmitAction(asked)
    told = [json.loads(span.to_json()) for span in spans()]
    assert len(told) > 20
    assert {name for span in told for name in span["attributes"]} == ATTRIBUTES
    assert [span["events"] for span in told if span["events"]] == []
    for span in told:
        assert set(span["status"]) == {"status_code"}, span
        assert re.fullmatch(r"tables/oak|", str(span["attributes"].get("fivedraw.table", "")))
    text = json.dumps(told)
    assert single_cards(text.encode()) == []
    assert "eyJ" not in text
    assert "ann" not in text


async def test_a_player_cannot_make_the_house_follow_its_trace(house, spans):
    await house.open_table("oak")
    theirs = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    await house.stub("ann").GetTable(pb.GetTableRequest(name="tables/oak"), metadata=((tracing.PARENT, theirs),))
    (span,) = [each for each in spans() if each.name.endswith("/GetTable") and each.kind.name == "SERVER"]
    assert f"{span.context.trace_id:032x}" != "a" * 32


async def test_the_task_of_a_hands_history_goes_on_with_its_trace(house, spans, redis_server_url):
    app = make_app(redis_server_url.rpartition("/")[0] + "/9")
    ran = asyncio.Event()
    loop = asyncio.get_running_loop()

    def write(*_: object) -> None:
        loop.call_soon_threadsafe(ran.set)

    for name in (WRITE_HAND, WRITE_HANDS):
        app.task(name=name)(write)
    tracing.follow_tasks()
    sender = CelerySender(app)
    house.processes[0].house.parts.effects._tasks = sender
    with start_worker(app, pool="threads", concurrency=1, perform_ping_check=False, loglevel="warning"):
        trace = await fold(house, spans)
        async with asyncio.timeout(30):
            await ran.wait()
            wanted = trace[0].context.trace_id
            while not any(span.name.startswith("task history.write_hand") for span in of_trace(spans, wanted)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    sender.close()
    (task,) = [span for span in of_trace(spans, wanted) if span.name.startswith("task ")]
    parent = next(span for span in of_trace(spans, wanted) if span.context.span_id == task.parent.span_id)
    assert (parent.name, task.kind.name) == ("effect WriteHistory", "CONSUMER")


def test_a_line_of_the_log_says_its_table_hand_and_trace(spans, capsys):
    telemetry.configure_logging("table")
    asked = pb.SubmitActionRequest(table="tables/oak", hand=7)

    async def answer() -> None:
        subjects.at_work_on(asked)
        with tracing.serving("/t/SubmitAction", asked, (), from_service=False):
            telemetry.logger("test").info("said")
            telemetry.logger("test").info("of another", table="tables/elm")

    asyncio.run(answer())
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    (span,) = spans()
    assert (first["table"], first["hand"], first["trace"]) == ("tables/oak", 7, f"{span.context.trace_id:032x}")
    assert second["table"] == "tables/elm"


@pytest.mark.parametrize("name", ["tables/../x", "tables/As Kd", "oak", "tables/" + "x" * 65, "players/ann"])
def test_what_is_no_name_is_told_nowhere(name):
    assert subjects.Subject.of(pb.GetTableRequest(name=name)) == ("", 0)


def test_without_a_collector_nothing_is_traced(make_settings):
    tracing.configure("table", make_settings())
    assert not tracing.is_on()
    assert tracing.begin_call("/a/B") is None
    assert tracing.parent() == ""
