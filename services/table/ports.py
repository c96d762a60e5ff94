"""What the table needs of its peers, as interfaces: the real ones are gRPC stubs, a simulation passes its own.

Messages are those of the contract. Every method raises `Fault`, also where a peer cannot be reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

import grpc
from fivedraw.deck.v1 import deck_service_pb2 as deck
from fivedraw.deck.v1 import deck_service_pb2_grpc
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet
from fivedraw.wallet.v1 import wallet_service_pb2_grpc
from grpc import StatusCode

from services.runtime.errors import Fault

T = TypeVar("T")

_UNREACHED: Final = {
    StatusCode.UNAVAILABLE: "SERVICE_UNAVAILABLE",
    StatusCode.DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
    StatusCode.RESOURCE_EXHAUSTED: "QUEUE_FULL",
    StatusCode.CANCELLED: "SERVICE_UNAVAILABLE",
}


class LedgerPort(Protocol):
    """The wallet, as far as the table calls it. Methods, errors and units: wallet_service.proto."""

    async def get_player(self, request: wallet.GetPlayerRequest) -> wallet.GetPlayerResponse:
        """Reads a player's profile."""
        ...

    async def buy_in(self, request: wallet.BuyInRequest) -> wallet.BuyInResponse:
        """Opens a sitting's stack."""
        ...

    async def top_up(self, request: wallet.TopUpRequest) -> wallet.TopUpResponse:
        """Adds to a stack."""
        ...

    async def cash_out(self, request: wallet.CashOutRequest) -> wallet.CashOutResponse:
        """Empties a stack and closes its sitting."""
        ...

    async def post_forced(self, request: wallet.PostForcedRequest) -> wallet.PostForcedResponse:
        """Opens a hand."""
        ...

    async def collect_bets(self, request: wallet.CollectBetsRequest) -> wallet.CollectBetsResponse:
        """Moves a round's bets into the pot."""
        ...

    async def award_pot(self, request: wallet.AwardPotRequest) -> wallet.AwardPotResponse:
        """Pays the pot out and closes the hand."""
        ...

    async def void_hand(self, request: wallet.VoidHandRequest) -> wallet.VoidHandResponse:
        """Undoes a hand."""
        ...

    async def refund_carry(self, request: wallet.RefundCarryRequest) -> wallet.RefundCarryResponse:
        """Gives the carry back."""
        ...

    async def get_hand(self, request: wallet.GetHandRequest) -> wallet.GetHandResponse:
        """Reads what everybody paid into a hand and got out of it."""
        ...

    async def get_table_ledger(self, request: wallet.GetTableLedgerRequest) -> wallet.GetTableLedgerResponse:
        """Reads what the ledger knows of a table."""
        ...

    async def fence_table(self, request: wallet.FenceTableRequest) -> wallet.FenceTableResponse:
        """Refuses older epochs from now on, and voids the open hand."""
        ...


class DeckPort(Protocol):
    """The deck service, as far as the table calls it. Methods, errors and units: deck_service.proto."""

    async def open_deck(self, request: deck.OpenDeckRequest) -> deck.OpenDeckResponse:
        """Opens a hand's deck."""
        ...

    async def cut_deck(self, request: deck.CutDeckRequest) -> deck.CutDeckResponse:
        """Shuffles and freezes it."""
        ...

    async def deal_cards(self, request: deck.DealCardsRequest) -> deck.DealCardsResponse:
        """Deals five cards each."""
        ...

    async def exchange_cards(self, request: deck.ExchangeCardsRequest) -> deck.ExchangeCardsResponse:
        """Takes discards and gives new cards."""
        ...

    async def deal_late_card(self, request: deck.DealLateCardRequest) -> deck.DealLateCardResponse:
        """Gives the fourth card of a four-card draw."""
        ...

    async def close_deck(self, request: deck.CloseDeckRequest) -> deck.CloseDeckResponse:
        """Closes a hand's deck."""
        ...

    async def fence_table(self, request: deck.FenceTableRequest) -> deck.FenceTableResponse:
        """Refuses older epochs from now on."""
        ...

    async def draw_lots(self, request: deck.DrawLotsRequest) -> deck.DrawLotsResponse:
        """Chooses a seat by lot."""
        ...


async def called(call: Callable[..., Awaitable[T]] | Any, request: Any) -> T:
    """Calls a peer; what goes wrong is raised as `Fault`, with the house's own reason where the peer gave one."""
    try:
        answer: T = await call(request)
    except grpc.aio.AioRpcError as error:
        fault = Fault.from_rpc(error)
        if fault is None:
            reason = _UNREACHED.get(error.code(), "INTERNAL")
            fault = Fault(reason, f"a peer answered {error.code().name}")
        raise fault from None
    return answer


class RpcLedger:
    """The wallet over gRPC."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._people = wallet_service_pb2_grpc.WalletServiceStub(channel)
        self._table = wallet_service_pb2_grpc.TableLedgerServiceStub(channel)

    async def get_player(self, request: wallet.GetPlayerRequest) -> wallet.GetPlayerResponse:
        """See `LedgerPort`."""
        return await called(self._people.GetPlayer, request)

    async def buy_in(self, request: wallet.BuyInRequest) -> wallet.BuyInResponse:
        """See `LedgerPort`."""
        return await called(self._table.BuyIn, request)

    async def top_up(self, request: wallet.TopUpRequest) -> wallet.TopUpResponse:
        """See `LedgerPort`."""
        return await called(self._table.TopUp, request)

    async def cash_out(self, request: wallet.CashOutRequest) -> wallet.CashOutResponse:
        """See `LedgerPort`."""
        return await called(self._table.CashOut, request)

    async def post_forced(self, request: wallet.PostForcedRequest) -> wallet.PostForcedResponse:
        """See `LedgerPort`."""
        return await called(self._table.PostForced, request)

    async def collect_bets(self, request: wallet.CollectBetsRequest) -> wallet.CollectBetsResponse:
        """See `LedgerPort`."""
        return await called(self._table.CollectBets, request)

    async def award_pot(self, request: wallet.AwardPotRequest) -> wallet.AwardPotResponse:
        """See `LedgerPort`."""
        return await called(self._table.AwardPot, request)

    async def void_hand(self, request: wallet.VoidHandRequest) -> wallet.VoidHandResponse:
        """See `LedgerPort`."""
        return await called(self._table.VoidHand, request)

    async def refund_carry(self, request: wallet.RefundCarryRequest) -> wallet.RefundCarryResponse:
        """See `LedgerPort`."""
        return await called(self._table.RefundCarry, request)

    async def get_hand(self, request: wallet.GetHandRequest) -> wallet.GetHandResponse:
        """See `LedgerPort`."""
        return await called(self._people.GetHand, request)

    async def get_table_ledger(self, request: wallet.GetTableLedgerRequest) -> wallet.GetTableLedgerResponse:
        """See `LedgerPort`."""
        return await called(self._table.GetTableLedger, request)

    async def fence_table(self, request: wallet.FenceTableRequest) -> wallet.FenceTableResponse:
        """See `LedgerPort`."""
        return await called(self._table.FenceTable, request)


class RpcDeck:
    """The deck service over gRPC."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = deck_service_pb2_grpc.DeckServiceStub(channel)

    async def open_deck(self, request: deck.OpenDeckRequest) -> deck.OpenDeckResponse:
        """See `DeckPort`."""
        return await called(self._stub.OpenDeck, request)

    async def cut_deck(self, request: deck.CutDeckRequest) -> deck.CutDeckResponse:
        """See `DeckPort`."""
        return await called(self._stub.CutDeck, request)

    async def deal_cards(self, request: deck.DealCardsRequest) -> deck.DealCardsResponse:
        """See `DeckPort`."""
        return await called(self._stub.DealCards, request)

    async def exchange_cards(self, request: deck.ExchangeCardsRequest) -> deck.ExchangeCardsResponse:
        """See `DeckPort`."""
        return await called(self._stub.ExchangeCards, request)

    async def deal_late_card(self, request: deck.DealLateCardRequest) -> deck.DealLateCardResponse:
        """See `DeckPort`."""
        return await called(self._stub.DealLateCard, request)

    async def close_deck(self, request: deck.CloseDeckRequest) -> deck.CloseDeckResponse:
        """See `DeckPort`."""
        return await called(self._stub.CloseDeck, request)

    async def fence_table(self, request: deck.FenceTableRequest) -> deck.FenceTableResponse:
        """See `DeckPort`."""
        return await called(self._stub.FenceTable, request)

    async def draw_lots(self, request: deck.DrawLotsRequest) -> deck.DrawLotsResponse:
        """See `DeckPort`."""
        return await called(self._stub.DrawLots, request)
