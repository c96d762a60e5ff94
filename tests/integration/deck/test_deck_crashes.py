"""The deck dies at every step, before and after its commit; whoever asks again gets the same cards."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fivedraw.deck.v1 import deck_service_pb2 as pb
from fivedraw.deck.v1 import deck_service_pb2_grpc as pb_grpc

from services.deck.decks import Decks
from services.deck.values import HandKey
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from tests.conftest import SEALING_KEY
from tests.integration.deck.process import START_SECONDS_MAX, DeckProcess

KEY = HandKey("tables/oak", 1, 1)


class Crash(Exception):
    """The process is gone."""


class DyingDatabase:
    """A database whose process dies in its next write: before the commit, or after it and before the answer."""

    def __init__(self, database: Database, moment: str) -> None:
        self._database = database
        self._moment = moment

    async def write(self, fn: Callable[..., Any], *args: Any) -> Any:
        def dies(conn: Any) -> None:
            fn(conn, *args)
            raise Crash

        if self._moment == "before the commit":
            await self._database.write(dies)
        else:
            await self._database.write(fn, *args)
        raise Crash


def script(hands: dict[int, tuple[str, ...]]) -> list[Callable[[Decks], Awaitable[object]]]:
    """A whole hand; later steps read the cards that earlier ones gave."""
    return [
        lambda decks: decks.open_deck(KEY, "open"),
        lambda decks: decks.cut_deck(KEY, "cut", cut=b"mine"),
        lambda decks: decks.deal_cards(KEY, "deal", seats=(2, 3, 1)),
        lambda decks: decks.exchange_cards(KEY, "x2", seat=2, discards=hands[2][:4], draw_now=3),
        lambda decks: decks.exchange_cards(KEY, "x3", seat=3, discards=hands[3]),
        lambda decks: decks.exchange_cards(KEY, "x1", seat=1, discards=hands[1]),
        lambda decks: decks.deal_late_card(KEY, "late", seat=2),
        lambda decks: decks.close_deck(KEY, "close"),
    ]


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
async def test_a_crash_at_each_step_changes_no_card(database, moment: str) -> None:
    db = await database("deck", isolation="READ COMMITTED")
    sealer = Sealer([("test", SEALING_KEY)])
    hands: dict[int, tuple[str, ...]] = {}
    answers = []
    for step in script(hands):
        dying = Decks(DyingDatabase(db, moment), SystemClock(), sealer)
        with pytest.raises(Crash):
            await step(dying)
        first = await step(Decks(db, SystemClock(), sealer))
        assert await step(Decks(db, SystemClock(), sealer)) == first
        answers.append(first)
        hands |= {hand.seat: hand.cards for hand in getattr(first, "hands", ())}
    replica = Decks(db, SystemClock(), sealer)
    assert [await step(replica) for step in script(hands)] == answers
    seen = [card for hand in hands.values() for card in hand]
    seen += [card for answer in answers[3:6] for card in answer.cards] + [answers[6].card]
    assert len(set(seen)) == len(seen) == 29
    assert (await replica.open_deck(HandKey("tables/oak", 1, 2), "open-2")).commitment == answers[7].next_commitment


async def test_kill_9_among_many_steps_and_the_same_cards_after_the_restart(tmp_path, jwks_file, make_settings) -> None:
    process = DeckProcess(tmp_path, jwks_file)
    requests = [
        pb.DealCardsRequest(key=pb.HandKey(table=f"tables/t{n}", epoch=1, hand=1), step_id="deal", seats=[1, 2, 3])
        for n in range(120)
    ]
    await process.start()
    try:
        async with connect(process.target, make_settings(), as_service="table", timeout=30) as channel:
            stub = pb_grpc.DeckServiceStub(channel)
            await asyncio.gather(*(stub.OpenDeck(pb.OpenDeckRequest(key=r.key, step_id="open")) for r in requests))
            await asyncio.gather(*(stub.CutDeck(pb.CutDeckRequest(key=r.key, step_id="cut")) for r in requests))
            waiting = [asyncio.ensure_future(stub.DealCards(request)) for request in requests]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            process.end(signal.SIGKILL)
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        answered = {n: each for n, each in enumerate(outcomes) if not isinstance(each, BaseException)}
        assert answered
        await process.start()
        async with connect(process.target, make_settings(), as_service="table", timeout=30) as channel:
            # The dead process is remembered under this address, for as long as its backoff lasts.
            await asyncio.wait_for(channel.channel_ready(), START_SECONDS_MAX)
            stub = pb_grpc.DeckServiceStub(channel)
            again = await asyncio.gather(*(stub.DealCards(request) for request in requests))
        assert all(again[n] == first for n, first in answered.items())
        assert all(len({card for hand in each.hands for card in hand.cards}) == 15 for each in again)
        assert process.end(signal.SIGTERM) == 0
        log = process.log()
        cards = {" ".join(hand.cards) for each in again for hand in each.hands}
        assert '"serving"' in log
        assert not any(hand in log for hand in cards)
    finally:
        process.end(signal.SIGKILL)
