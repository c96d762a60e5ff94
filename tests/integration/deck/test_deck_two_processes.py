"""Two deck services on one PostgreSQL race for the same hands: one line of history, whoever is asked, whoever dies."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import grpc
import pytest
import pytest_asyncio
from fivedraw.deck.v1 import deck_service_pb2 as pb
from fivedraw.deck.v1 import deck_service_pb2_grpc as pb_grpc

from services.runtime.channel import connect
from services.runtime.errors import Fault
from tests.integration.deck.process import DeckProcess
from tests.servers import postgres_database

TABLES = 40
SEATS = (2, 3, 1)


class Replicas:
    """Two processes, and a stub of each."""

    def __init__(self, processes: list[DeckProcess], stubs: list[Any]) -> None:
        self.processes = processes
        self.stubs = stubs

    async def both(self, method: str, request: Any) -> tuple[Any, Any]:
        """The same request to both at once."""
        one, two = await asyncio.gather(*(getattr(stub, method)(request) for stub in self.stubs))
        return one, two


@pytest.fixture(scope="module")
def processes(tmp_path_factory, jwks_file, postgres_server_url) -> Iterator[list[DeckProcess]]:
    """Two replicas that are started at once on an empty database, which both of them migrate."""
    folder = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database(postgres_server_url))
        made = [DeckProcess(folder, jwks_file, database_url=url, name=f"deck-{number}") for number in (1, 2)]
        for process in made:
            stack.callback(process.end, signal.SIGKILL)
            process.spawn()
        yield made


@pytest_asyncio.fixture
async def replicas(processes, make_settings) -> AsyncIterator[Replicas]:
    async with AsyncExitStack() as stack:
        for process in processes:
            await process.start()
        channels = [
            await stack.enter_async_context(connect(process.target, make_settings(), as_service="table", timeout=30))
            for process in processes
        ]
        yield Replicas(processes, [pb_grpc.DeckServiceStub(channel) for channel in channels])


def key(table: str, hand: int = 1) -> pb.HandKey:
    return pb.HandKey(table=f"tables/{table}", epoch=1, hand=hand)


def exchange(table: str, step: str, cards: list[str]) -> pb.ExchangeCardsRequest:
    return pb.ExchangeCardsRequest(
        key=key(table), step_id=step, seat=2, discards=cards, draw_now=len(cards), rule=pb.RESHUFFLE_RULE_STUB_FIRST
    )


async def outcome(call: Any) -> Any:
    """The answer, or the reason of the refusal."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        fault = Fault.from_rpc(error)
        if fault is None:
            raise
        return fault.reason


async def test_two_processes_race_for_every_step_of_a_hand(replicas: Replicas) -> None:
    async def play(table: str) -> None:
        opened = await replicas.both("OpenDeck", pb.OpenDeckRequest(key=key(table), step_id="open"))
        assert opened[0] == opened[1]
        frozen = await replicas.both("CutDeck", pb.CutDeckRequest(key=key(table), step_id="cut", cut=b"mine"))
        assert frozen[0] == frozen[1]
        dealt = await replicas.both("DealCards", pb.DealCardsRequest(key=key(table), step_id="deal", seats=SEATS))
        assert dealt[0] == dealt[1]
        hands = {hand.seat: list(hand.cards) for hand in dealt[0].hands}
        # Different discards under different ids: one wins, the other is refused, and the winner can be asked again.
        asked = [exchange(table, "one", hands[2][:1]), exchange(table, "two", hands[2][1:4])]
        both = [outcome(stub.ExchangeCards(each)) for stub, each in zip(replicas.stubs, asked, strict=True)]
        drawn = await asyncio.gather(*both)
        assert sorted(isinstance(each, str) for each in drawn) == [False, True]
        won = 0 if drawn[1] == "ALREADY_DREW" else 1
        assert drawn[1 - won] == "ALREADY_DREW"
        assert await replicas.stubs[1 - won].ExchangeCards(asked[won]) == drawn[won]
        # The same step with other content: at most one of the two is ever taken.
        request = pb.CloseDeckRequest(key=key(table), step_id="close")
        void = pb.CloseDeckRequest(key=key(table), step_id="close", void=True)
        closed = await asyncio.gather(
            outcome(replicas.stubs[0].CloseDeck(request)), outcome(replicas.stubs[1].CloseDeck(void))
        )
        assert [each for each in closed if isinstance(each, str)] == ["STEP_CONFLICT"]

    await asyncio.gather(*(play(f"step-{n}") for n in range(TABLES)))


async def test_a_second_open_hand_and_an_older_epoch_are_refused_across_processes(replicas: Replicas) -> None:
    async def race(table: str) -> None:
        opened = await asyncio.gather(
            *(
                outcome(stub.OpenDeck(pb.OpenDeckRequest(key=key(table, hand), step_id=f"open-{hand}")))
                for hand, stub in enumerate(replicas.stubs, 1)
            )
        )
        # Whichever came first is open; the other is a second one, or came after a later number.
        assert sum(not isinstance(each, str) for each in opened) == 1
        assert {each for each in opened if isinstance(each, str)} == {"OTHER_HAND_OPEN"}
        fenced = await replicas.both("FenceTable", pb.FenceTableRequest(table=f"tables/{table}", epoch=2))
        assert fenced[0] == fenced[1]
        for stub in replicas.stubs:
            cut = pb.CutDeckRequest(key=key(table, fenced[0].voided_hand), step_id="cut")
            assert await outcome(stub.CutDeck(cut)) == "STALE_EPOCH"

    await asyncio.gather(*(race(f"hand-{n}") for n in range(TABLES)))


async def test_one_process_dies_and_the_other_deals_the_same_cards(replicas: Replicas) -> None:
    requests = [pb.DealCardsRequest(key=key(f"kill-{n}"), step_id="deal", seats=SEATS) for n in range(TABLES * 3)]
    first, second = replicas.stubs
    await asyncio.gather(*(first.OpenDeck(pb.OpenDeckRequest(key=each.key, step_id="open")) for each in requests))
    await asyncio.gather(*(second.CutDeck(pb.CutDeckRequest(key=each.key, step_id="cut")) for each in requests))
    waiting = [asyncio.ensure_future(first.DealCards(each)) for each in requests]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    replicas.processes[0].end(signal.SIGKILL)
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    answered = {n: each for n, each in enumerate(outcomes) if not isinstance(each, BaseException)}
    assert answered
    again = await asyncio.gather(*(second.DealCards(each) for each in requests))
    assert all(again[n] == each for n, each in answered.items())
    assert replicas.processes[1].end(signal.SIGTERM) == 0
    cards = {" ".join(hand.cards) for each in again for hand in each.hands}
    told = replicas.processes[0].log() + replicas.processes[1].log()
    assert '"serving"' in told
    assert not any(hand in told for hand in cards)
