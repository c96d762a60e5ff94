"""The peers of a simulated house: the real servicers, called in the same process through a network that can fail.

A call can be lost before it arrives, or its answer can be lost after it was carried out. Both look the same to the
caller, as they do on a real network.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from services.runtime.auth import Identity, acting_as
from services.runtime.errors import Fault

TABLE = Identity("service", "table")

LEDGER_METHODS = {
    "get_player": "GetPlayer",
    "buy_in": "BuyIn",
    "top_up": "TopUp",
    "cash_out": "CashOut",
    "post_forced": "PostForced",
    "collect_bets": "CollectBets",
    "award_pot": "AwardPot",
    "void_hand": "VoidHand",
    "refund_carry": "RefundCarry",
    "get_hand": "GetHand",
    "get_table_ledger": "GetTableLedger",
    "fence_table": "FenceTable",
}
DECK_METHODS = {
    "open_deck": "OpenDeck",
    "cut_deck": "CutDeck",
    "deal_cards": "DealCards",
    "exchange_cards": "ExchangeCards",
    "deal_late_card": "DealLateCard",
    "close_deck": "CloseDeck",
    "fence_table": "FenceTable",
    "draw_lots": "DrawLots",
}


class Network:
    """Delays every call a little, and loses some: `loss` is the chance of each of the two ways to lose one."""

    def __init__(self, rng: random.Random, loss: float = 0.0) -> None:
        self.rng = rng
        self.loss = loss
        self.lost = 0

    async def call(self, method: Any, request: Any, caller: Identity) -> Any:
        await asyncio.sleep(self.rng.uniform(0.0001, 0.002))
        self._maybe_lose()
        with acting_as(caller):
            answer = await method(request, None)
        self._maybe_lose()
        return answer

    def _maybe_lose(self) -> None:
        if self.rng.random() < self.loss:
            self.lost += 1
            raise Fault("SERVICE_UNAVAILABLE", "the network lost it")


class SimulatedPeer:
    """Looks like a port of the table; each method is a servicer's, behind the network."""

    def __init__(self, network: Network, servicers: list[Any], methods: dict[str, str]) -> None:
        for name, rpc in methods.items():
            servicer = next(each for each in servicers if rpc in vars(type(each)))
            setattr(self, name, self._through(network, getattr(servicer, rpc)))

    @staticmethod
    def _through(network: Network, method: Any) -> Any:
        async def call(request: Any) -> Any:
            return await network.call(method, request, TABLE)

        return call
