"""Hands that a whole house played, as its history exports them, pass both verifiers for whoever reads them."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter

from fivedraw.deck.v1 import deck_service_pb2 as pb
from fivedraw.history.v1 import history_service_pb2

from services.deck.grpc_api import DeckApi
from services.deck.verification import verify_text
from services.history.formats import structured
from services.history.reading import HandReader
from services.runtime.auth import Identity
from services.runtime.virtual import VirtualClock, run_virtual
from tests.simulation.house import SimulatedHouse
from tests.simulation.players import Bot
from tests.unit.deck.javascript import verify_in_javascript

SEED = 41
SEATS = 6
RULEBOOKS = {"house": 10, "openers": 10, "american": 1}
PLAY_SECONDS = 25.0


async def played_house() -> SimulatedHouse:
    """Full tables of three rulebooks, played until some dozens of hands are over."""
    house = SimulatedHouse(VirtualClock(asyncio.get_running_loop()), SEED)
    await house.start()
    bots = []
    for rulebook, unit in RULEBOOKS.items():
        rake = {"rake_basis_points": 500, "rake_cap_minor": 12} if rulebook == "house" else {}
        await house.open_table(rulebook, rulebook, **rake)
        for seat in range(SEATS):
            identity = await house.make_player(f"{rulebook}-{seat}")
            rng = random.Random(SEED * 100 + len(bots))
            bots.append(Bot(house, identity, rulebook, rng, 25 * unit, 0.0))
    tasks = [asyncio.create_task(bot.run()) for bot in bots]
    await asyncio.sleep(PLAY_SECONDS)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(500)
    assert await house.work_all() == []
    return house


async def exports() -> list[str]:
    """Each hand, one JSON object a line, as a player of it, the public and an auditor read it."""
    house = await played_house()
    house.decks._seed_delay_ms = 0
    reader = HandReader(house.databases["history"], house.sealer, house.clock, proofs=Proofs(house))
    auditor = Identity("person", "ada", frozenset({"auditor"}))
    public = Identity("person", "olga", frozenset({"operator"}))
    listed = await reader.list_hands(auditor, history_service_pb2.ListHandsRequest(page_size=200))
    lines = []
    for each in listed.hands:
        rulebook = each.rulebook.removeprefix("rulebooks/")
        player = Identity("person", f"{rulebook}-{each.hand_id % SEATS}", frozenset({"player"}))
        for reads in (player, public, auditor):
            lines.append(structured.write_line(await reader.get_hand(reads, each.name, with_proof=True)))
    await house.stop()
    return lines


class Proofs:
    """The deck of a simulated house, as the history asks it."""

    def __init__(self, house: SimulatedHouse) -> None:
        self._deck = DeckApi(house.decks)

    async def read(self, request: pb.GetFairnessProofRequest) -> pb.GetFairnessProofResponse:
        return await self._deck.GetFairnessProof(request, None)


def test_every_hand_of_a_whole_house_passes_both_verifiers() -> None:
    lines = run_virtual(exports())
    hands = [json.loads(line) for line in lines]
    events = Counter(event["type"] for hand in hands for event in hand["events"])
    assert len(lines) > 60
    assert {hand["rulebook"] for hand in hands} == {f"rulebooks/{name}" for name in RULEBOOKS}
    assert events["cards_drawn"] > 100
    # Short stacks make side pots, and one table has a rake.
    assert any(len(hand["pots"]) > 1 for hand in hands)
    assert any(hand["rake_minor"] for hand in hands)
    # Cuts and players' own seeds went into the shuffles.
    assert sum(bool(hand["proof"]["cut"]) for hand in hands) > 10
    assert sum(len(hand["proof"]["player_seeds"]) for hand in hands) > 100
    for line in lines:
        assert verify_text(line).failed == []
    # All views of all hands together: every deck follows the one before, in both verifiers.
    whole = verify_text("".join(lines))
    assert whole.failed == []
    assert sum("follow each other without a gap" in sentence for sentence in whole.proved) == len(RULEBOOKS)
    assert verify_in_javascript("".join(lines))[-1].endswith(" 0 failed")
