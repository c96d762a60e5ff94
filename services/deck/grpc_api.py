"""The deck's gRPC face: messages to plain values and back. The gate says who may call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import grpc
from fivedraw.deck.v1 import deck_service_pb2 as pb
from fivedraw.deck.v1 import deck_service_pb2_grpc as pb_grpc

from services.deck import metrics
from services.deck.decks import Decks
from services.deck.shuffling import PlayerSeed
from services.deck.values import HandKey, Proof, Reshuffled, ReshuffleRule, SeatCards
from services.runtime.errors import Fault

Context = grpc.aio.ServicerContext[Any, Any]

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["DeckService"].full_name

_RULES: Mapping[int, ReshuffleRule] = {
    pb.RESHUFFLE_RULE_STUB_FIRST: ReshuffleRule.STUB_FIRST,
    pb.RESHUFFLE_RULE_MIXED: ReshuffleRule.MIXED,
}


class DeckApi(pb_grpc.DeckServiceServicer):
    """Serves `fivedraw.deck.v1.DeckService` from a `Decks`."""

    def __init__(self, decks: Decks) -> None:
        self._decks = decks

    async def OpenDeck(self, request: pb.OpenDeckRequest, context: Context) -> pb.OpenDeckResponse:
        """Opens a hand's deck."""
        opened = await self._decks.open_deck(_key(request.key), request.step_id)
        return pb.OpenDeckResponse(deck_number=opened.deck_number, commitment=opened.commitment, chain=opened.chain)

    async def CutDeck(self, request: pb.CutDeckRequest, context: Context) -> pb.CutDeckResponse:
        """Shuffles and freezes it."""
        seeds = tuple(PlayerSeed(each.seat, each.seed) for each in request.player_seeds)
        frozen = await self._decks.cut_deck(_key(request.key), request.step_id, cut=request.cut, player_seeds=seeds)
        return pb.CutDeckResponse(root=frozen.root)

    async def DealCards(self, request: pb.DealCardsRequest, context: Context) -> pb.DealCardsResponse:
        """Deals the hands."""
        dealt = await self._decks.deal_cards(_key(request.key), request.step_id, seats=tuple(request.seats))
        return pb.DealCardsResponse(hands=[pb.SeatCards(seat=hand.seat, cards=hand.cards) for hand in dealt.hands])

    async def ExchangeCards(
        self,
        request: pb.ExchangeCardsRequest,
        context: Context,
    ) -> pb.ExchangeCardsResponse:
        """Exchanges a seat's discards."""
        exchanged = await self._decks.exchange_cards(
            _key(request.key),
            request.step_id,
            seat=request.seat,
            discards=tuple(request.discards),
            draw_now=request.draw_now,
            folded_seats=tuple(request.folded_seats),
            rule=_rule(request.rule),
        )
        return pb.ExchangeCardsResponse(cards=exchanged.cards, reshuffle=_reshuffle(exchanged.reshuffle))

    async def DealLateCard(
        self,
        request: pb.DealLateCardRequest,
        context: Context,
    ) -> pb.DealLateCardResponse:
        """Deals a late card."""
        late = await self._decks.deal_late_card(
            _key(request.key),
            request.step_id,
            seat=request.seat,
            burn=request.burn,
            folded_seats=tuple(request.folded_seats),
            rule=_rule(request.rule),
        )
        return pb.DealLateCardResponse(card=late.card, burned=late.burned, reshuffle=_reshuffle(late.reshuffle))

    async def CloseDeck(self, request: pb.CloseDeckRequest, context: Context) -> pb.CloseDeckResponse:
        """Closes a hand's deck."""
        closed = await self._decks.close_deck(_key(request.key), request.step_id, void=request.void)
        return pb.CloseDeckResponse(next_commitment=closed.next_commitment)

    async def FenceTable(
        self,
        request: pb.FenceTableRequest,
        context: Context,
    ) -> pb.FenceTableResponse:
        """Fences a table behind a new epoch."""
        fenced = await self._decks.fence_table(request.table, request.epoch)
        return pb.FenceTableResponse(voided_hand=fenced.voided_hand, next_commitment=fenced.next_commitment)

    async def DrawLots(self, request: pb.DrawLotsRequest, context: Context) -> pb.DrawLotsResponse:
        """Draws lots."""
        seat = await self._decks.draw_lots(request.table, request.step_id, seats=tuple(request.seats))
        return pb.DrawLotsResponse(seat=seat)

    async def GetFairnessProof(
        self,
        request: pb.GetFairnessProofRequest,
        context: Context,
    ) -> pb.GetFairnessProofResponse:
        """Proves a closed hand to one viewer."""
        proof = await self._decks.get_fairness_proof(
            request.table,
            request.hand,
            seen_hands=tuple(SeatCards(each.seat, tuple(each.cards)) for each in request.seen_hands),
            seen=tuple(request.seen),
            open_seed=request.open_seed,
        )
        return proof_message(proof)

    async def GetRngHealth(
        self,
        request: pb.GetRngHealthRequest,
        context: Context,
    ) -> pb.GetRngHealthResponse:
        """Says how the randomness is."""
        health = self._decks.get_rng_health()
        answer = pb.GetRngHealthResponse(
            healthy=health.healthy, fault=health.fault, shuffles=health.shuffles, reseeds=health.reseeds
        )
        answer.last_test_time.FromMilliseconds(health.last_test_ms)
        return answer


def register(decks: Decks, server: grpc.aio.Server) -> list[str]:
    """Adds the service to a server; returns its full name for health and reflection."""
    pb_grpc.add_DeckServiceServicer_to_server(DeckApi(decks), server)
    return [SERVICE_NAME]


def proof_message(proof: Proof) -> pb.GetFairnessProofResponse:
    """A proof as the wire carries it."""
    return pb.GetFairnessProofResponse(
        version=proof.version,
        deck_number=proof.deck_number,
        commitment=proof.commitment,
        chain=proof.chain,
        shuffles=[
            pb.CommittedShuffle(shuffle=each.shuffle, root=each.root, cards=each.cards) for each in proof.shuffles
        ],
        places=[
            pb.OpenedPlace(shuffle=each.shuffle, place=each.place, card=each.card, salt=each.salt, path=each.path)
            for each in proof.places
        ],
        seed=proof.seed,
        cut=proof.cut,
        player_seeds=_seed_messages(proof.player_seeds),
        previous_chain=proof.previous_chain,
        passed=[pb.PassedPlace(shuffle=each.shuffle, place=each.place) for each in proof.passed],
        void=proof.void,
    )


def _seed_messages(seeds: Iterable[PlayerSeed]) -> list[pb.PlayerSeed]:
    return [pb.PlayerSeed(seat=each.seat, seed=each.seed) for each in seeds]


def _key(key: pb.HandKey) -> HandKey:
    return HandKey(key.table, key.epoch, key.hand)


def _rule(rule: int) -> ReshuffleRule:
    if rule not in _RULES:
        raise Fault("INVALID_REQUEST", "rule must be RESHUFFLE_RULE_STUB_FIRST or RESHUFFLE_RULE_MIXED", field="rule")
    return _RULES[rule]


def _reshuffle(reshuffled: Reshuffled | None) -> pb.Reshuffle | None:
    if reshuffled is None:
        return None
    metrics.RESHUFFLES.inc()
    return pb.Reshuffle(
        number=reshuffled.number,
        root=reshuffled.root,
        cards=reshuffled.cards,
        dealt_before=reshuffled.dealt_before,
    )
