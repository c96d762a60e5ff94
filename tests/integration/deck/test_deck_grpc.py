"""The deck over gRPC: who may call, what a whole hand looks like on the wire, and garbage answered with reasons."""

from __future__ import annotations

from functools import partial

import grpc
import pytest
from fivedraw.deck.v1 import deck_service_pb2 as pb
from fivedraw.deck.v1 import deck_service_pb2_grpc as pb_grpc

from services.deck import grpc_api
from services.runtime.errors import Fault

KEY = pb.HandKey(table="tables/oak", epoch=1, hand=1)
LONG = "x" * 30_000

PRIVATE_CALLS = (
    ("OpenDeck", pb.OpenDeckRequest(key=KEY, step_id="a")),
    ("CutDeck", pb.CutDeckRequest(key=KEY, step_id="a")),
    ("DealCards", pb.DealCardsRequest(key=KEY, step_id="a", seats=[1, 2])),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1, rule=pb.RESHUFFLE_RULE_MIXED)),
    ("DealLateCard", pb.DealLateCardRequest(key=KEY, step_id="a", seat=1, rule=pb.RESHUFFLE_RULE_MIXED)),
    ("CloseDeck", pb.CloseDeckRequest(key=KEY, step_id="a")),
    ("FenceTable", pb.FenceTableRequest(table="tables/oak", epoch=1)),
    ("DrawLots", pb.DrawLotsRequest(table="tables/oak", step_id="a", seats=[1])),
)

GARBAGE = (
    ("OpenDeck", pb.OpenDeckRequest()),
    ("OpenDeck", pb.OpenDeckRequest(key=KEY)),
    ("OpenDeck", pb.OpenDeckRequest(key=KEY, step_id=LONG)),
    ("OpenDeck", pb.OpenDeckRequest(key=pb.HandKey(table=LONG, epoch=1, hand=1), step_id="a")),
    ("OpenDeck", pb.OpenDeckRequest(key=pb.HandKey(table="tables/../x", epoch=1, hand=1), step_id="a")),
    ("OpenDeck", pb.OpenDeckRequest(key=pb.HandKey(table="tables/oak", epoch=-1, hand=1), step_id="a")),
    ("OpenDeck", pb.OpenDeckRequest(key=pb.HandKey(table="tables/oak", epoch=1, hand=-(2**63)), step_id="a")),
    ("CutDeck", pb.CutDeckRequest(key=KEY, step_id="a", cut=bytes(65))),
    ("CutDeck", pb.CutDeckRequest(key=KEY, step_id="a", player_seeds=[pb.PlayerSeed(seat=1, seed=bytes(65))])),
    ("CutDeck", pb.CutDeckRequest(key=KEY, step_id="a", player_seeds=[pb.PlayerSeed(seat=-1)])),
    ("CutDeck", pb.CutDeckRequest(key=KEY, step_id="a", player_seeds=[pb.PlayerSeed(seat=2), pb.PlayerSeed(seat=1)])),
    ("CutDeck", pb.CutDeckRequest(key=KEY, step_id="a", player_seeds=[pb.PlayerSeed(seat=2)] * 1000)),
    ("DealCards", pb.DealCardsRequest(key=KEY, step_id="a")),
    ("DealCards", pb.DealCardsRequest(key=KEY, step_id="a", seats=[1, 1])),
    ("DealCards", pb.DealCardsRequest(key=KEY, step_id="a", seats=[0, 1])),
    ("DealCards", pb.DealCardsRequest(key=KEY, step_id="a", seats=range(1, 11))),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1)),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1, rule=7)),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1, rule=1, discards=["", LONG])),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1, rule=1, discards=["2c"] * 99)),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1, rule=1, draw_now=-3)),
    ("ExchangeCards", pb.ExchangeCardsRequest(key=KEY, step_id="a", seat=1, rule=1, folded_seats=[77])),
    ("DealLateCard", pb.DealLateCardRequest(key=KEY, step_id="a", seat=1)),
    ("CloseDeck", pb.CloseDeckRequest(key=KEY, step_id=" ")),
    ("FenceTable", pb.FenceTableRequest()),
    ("DrawLots", pb.DrawLotsRequest(table="tables/oak", step_id="a")),
    ("DrawLots", pb.DrawLotsRequest(table="tables/oak", step_id="a", seats=[1] * 5000)),
)


@pytest.fixture
def server_of(make_settings, serve):
    async def start(decks):
        return await serve(make_settings(), partial(grpc_api.register, decks), name="deck")

    return start


async def reason_of(call) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    fault = Fault.from_rpc(caught.value)
    assert fault is not None
    return fault.reason


async def test_a_hand_on_the_wire(decks, server_of, channel, token) -> None:
    server = await server_of(decks)
    stub = pb_grpc.DeckServiceStub(channel(server, as_service="table"))
    opened = await stub.OpenDeck(pb.OpenDeckRequest(key=KEY, step_id="open"), timeout=5)
    await stub.CutDeck(
        pb.CutDeckRequest(key=KEY, step_id="cut", cut=b"c", player_seeds=[pb.PlayerSeed(seat=1, seed=b"s")]), timeout=5
    )
    dealt = await stub.DealCards(pb.DealCardsRequest(key=KEY, step_id="deal", seats=[2, 1]), timeout=5)
    hands = {hand.seat: list(hand.cards) for hand in dealt.hands}
    request = pb.ExchangeCardsRequest(
        key=KEY, step_id="x", seat=2, discards=hands[2][:4], draw_now=3, rule=pb.RESHUFFLE_RULE_STUB_FIRST
    )
    exchanged = await stub.ExchangeCards(request, timeout=5)
    late = await stub.DealLateCard(
        pb.DealLateCardRequest(key=KEY, step_id="late", seat=2, burn=True, rule=pb.RESHUFFLE_RULE_STUB_FIRST), timeout=5
    )
    assert late.burned
    seen = [*hands[2], *exchanged.cards, late.card]
    assert len(set(seen)) == 9
    closed = await stub.CloseDeck(pb.CloseDeckRequest(key=KEY, step_id="close"), timeout=5)
    fenced = await stub.FenceTable(pb.FenceTableRequest(table=KEY.table, epoch=2), timeout=5)
    assert (fenced.voided_hand, fenced.next_commitment) == (0, closed.next_commitment)
    lot = await stub.DrawLots(pb.DrawLotsRequest(table=KEY.table, step_id="lot", seats=[5]), timeout=5)
    assert lot.seat == 5

    history = pb_grpc.DeckServiceStub(channel(server, as_service="history"))
    proof = await history.GetFairnessProof(
        pb.GetFairnessProofRequest(table=KEY.table, hand=1, seen_hands=[pb.SeatCards(seat=2, cards=seen)]), timeout=5
    )
    assert {place.card for place in proof.places} == set(seen)
    assert (proof.commitment, proof.chain, proof.cut) == (opened.commitment, opened.chain, b"c")
    operator = pb_grpc.DeckServiceStub(channel(server, token=token("olga", "operator")))
    health = await operator.GetRngHealth(pb.GetRngHealthRequest(), timeout=5)
    assert health.healthy
    assert health.shuffles == 1
    assert health.last_test_time.seconds > 0


async def test_cards_are_for_the_table_service_alone(decks, server_of, channel, token) -> None:
    server = await server_of(decks)
    callers = [
        channel(server, as_service="history"),
        channel(server, as_service="console"),
        channel(server, token=token("alice", "player")),
        channel(server, token=token("olga", "operator")),
        channel(server, token=token("ada", "auditor")),
    ]
    for caller in callers:
        stub = pb_grpc.DeckServiceStub(caller)
        for method, request in PRIVATE_CALLS:
            assert await reason_of(getattr(stub, method)(request, timeout=5)) == "PERMISSION_DENIED"
    for caller in (channel(server, as_service="table"), callers[2], callers[3]):
        stub = pb_grpc.DeckServiceStub(caller)
        request = pb.GetFairnessProofRequest(table="tables/oak", hand=1)
        assert await reason_of(stub.GetFairnessProof(request, timeout=5)) == "PERMISSION_DENIED"
    player = pb_grpc.DeckServiceStub(callers[2])
    assert await reason_of(player.GetRngHealth(pb.GetRngHealthRequest(), timeout=5)) == "PERMISSION_DENIED"
    nobody = pb_grpc.DeckServiceStub(channel(server))
    assert await reason_of(nobody.OpenDeck(PRIVATE_CALLS[0][1], timeout=5)) == "UNAUTHENTICATED"


async def test_garbage_is_answered_with_a_reason_and_changes_nothing(decks, server_of, channel) -> None:
    server = await server_of(decks)
    stub = pb_grpc.DeckServiceStub(channel(server, as_service="table"))
    await stub.OpenDeck(pb.OpenDeckRequest(key=KEY, step_id="open"), timeout=5)
    for method, request in GARBAGE:
        assert await reason_of(getattr(stub, method)(request, timeout=5)) in ("INVALID_REQUEST", "DUPLICATE_CARD")
    cut = await stub.CutDeck(pb.CutDeckRequest(key=KEY, step_id="cut"), timeout=5)
    assert len(cut.root) == 32
