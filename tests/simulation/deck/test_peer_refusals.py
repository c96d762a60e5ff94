"""Whatever deck and wallet may answer to an effect of a hand, no table is stuck on it: it is retried, void, or rebuilt.

Each case is one hand at one table, on virtual time: one method of a peer answers everything that it is asked for that
hand with one reason. Then the peer is well again, and the next hand must be played as if nothing had been.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fivedraw.table.v1 import table_pb2

from services.runtime.errors import REASONS, Fault
from services.table.effects import APART, PASSING
from tests.simulation.seated import Seated, Tester, on_virtual_time

SERVICES = Path(__file__).parents[3] / "services"
DECK = ("open_deck", "cut_deck", "deal_cards", "exchange_cards", "close_deck")
WALLET = ("post_forced", "collect_bets", "award_pot")
# What any call may come to, whatever the peer is.
TRANSPORT = frozenset({"SERVICE_UNAVAILABLE", "DEADLINE_EXCEEDED", "QUEUE_FULL", "INTERNAL", "PERMISSION_DENIED"})
# Steps that must happen once the payout is decided: a peer that is away is asked until it is back.
MUST_HAPPEN = frozenset({"award_pot", "close_deck"})
REFUSALS_OF_A_PEER_THAT_COMES_BACK = 3
SAMPLE_SEED = 5


def reasons_of(service: str) -> set[str]:
    """Every listed reason that stands in a service's source, and what the transport may say."""
    found = set(TRANSPORT)
    for path in (SERVICES / service).rglob("*.py"):
        strings = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
        found |= {text for text in strings if isinstance(text, str) and text in REASONS}
    return found


CASES = [(method, reason) for method in DECK for reason in sorted(reasons_of("deck"))]
CASES += [(method, reason) for method in WALLET for reason in sorted(reasons_of("wallet"))]


class Peer:
    """Stands before the peers of a table; refuses one method of one hand."""

    def __init__(self, tester: Tester) -> None:
        parts = tester.house.replicas[0].house.parts
        self.method, self.reason, self.hand, self.left = "", "", 0, 0
        for peer, methods in ((parts.decks, DECK), (parts.ledger, WALLET)):
            for method in methods:
                setattr(peer, method, self._before(method, getattr(peer, method)))

    def _before(self, method: str, call: Any) -> Any:
        async def asked(request: Any) -> Any:
            hand = request.key.hand if hasattr(request, "key") else request.hand
            if method == self.method and hand == self.hand and self.left > 0:
                self.left -= 1
                raise Fault(self.reason, "refused by a test")
            return await call(request)

        return asked

    def refuse(self, method: str, reason: str, hand: int) -> None:
        comes_back = method in MUST_HAPPEN and reason in PASSING
        self.method, self.reason, self.hand = method, reason, hand
        self.left = REFUSALS_OF_A_PEER_THAT_COMES_BACK if comes_back else 1_000_000


def expected(method: str, reason: str) -> str:
    """What becomes of the hand."""
    if reason in APART or reason == "INSUFFICIENT_FUNDS":
        return "rebuilt"
    if method in MUST_HAPPEN:
        return "settled" if reason in PASSING else "paused"
    return "void"


async def outcome_of(tester: Tester, hand: int, before: Any) -> str:
    """Plays the hand as far as it goes."""
    while True:
        await tester.play_out()
        state = await tester.state()
        if state.mode == "paused":
            return "paused"
        if state.epoch != before.epoch:
            return "rebuilt"
        if state.last_hand >= hand and state.playing is None:
            return "void" if state.hand is not None and state.hand.void else "settled"
        await tester.until(lambda now: now.last_hand >= hand or now.epoch != before.epoch)


async def one_hand(tester: Tester, peer: Peer, method: str, reason: str) -> str:
    """One case, and the hand after it."""
    before = await tester.until(lambda state: state.playing is None and not state.effects)
    hand = before.last_hand + 1
    peer.refuse(method, reason, hand)
    await tester.until(lambda state: state.last_hand >= hand or state.epoch != before.epoch)
    outcome = await outcome_of(tester, hand, before)
    assert outcome == expected(method, reason), f"{method} refused with {reason}"
    peer.refuse("", "", 0)
    if outcome == "paused":
        # The house wants a person to look at it, and goes on when told to.
        await tester.until(lambda state: state.playing is None and not state.effects)
        await tester.operator("ResumeTable")
    state = await tester.until(lambda state: state.playing is not None and state.last_hand > hand)
    await tester.play_out()
    after = await tester.until(lambda state: state.playing is None and not state.effects)
    assert (after.epoch, after.hand.void) == (state.epoch, False), f"the hand after {method} {reason}"
    return outcome


async def check(tester: Tester, cases: list[tuple[str, str]]) -> Counter[str]:
    await tester.open("casadela")
    await tester.seated(3, buy_in=50_000)
    stands_pat = tester.passive

    async def draws_one(player: Seated) -> None:
        view = await player.view()
        if view.your_actions.discard:
            await player.act(table_pb2.ACTION_KIND_DISCARD, cards=view.your_cards[:1])
        else:
            await stands_pat(player)

    tester.passive = draws_one
    peer = Peer(tester)
    return Counter([await one_hand(tester, peer, *case) for case in cases])


@on_virtual_time
async def test_a_sample_of_refusals_leaves_no_table_stuck(tester: Tester) -> None:
    rng = random.Random(SAMPLE_SEED)
    sample = []
    for outcome in ("rebuilt", "void", "paused", "settled"):
        sample += rng.sample([case for case in CASES if expected(*case) == outcome], 3)
    assert (await check(tester, sample)).total() == 12


@pytest.mark.long
@pytest.mark.timeout(600)
@on_virtual_time
async def test_no_refusal_of_any_step_leaves_a_table_stuck(tester: Tester) -> None:
    outcomes = await check(tester, CASES)
    assert outcomes.total() == len(CASES) > 150


def test_every_refusal_of_the_decks_contract_is_one_of_its_source() -> None:
    """The cases are what the deck can say: no reason of the contract is missing in them."""
    contract = (SERVICES.parent / "proto" / "fivedraw" / "deck" / "v1" / "deck_service.proto").read_text()
    named = {word for word in REASONS if f" {word}" in contract or f"({word}" in contract}
    assert named - reasons_of("deck") == set()
