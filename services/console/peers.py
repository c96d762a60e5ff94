"""The services as the signed-in person sees them: every call carries that person's token, and no other proof."""

from __future__ import annotations

from typing import Any, Final

import grpc
from fivedraw.deck.v1 import deck_service_pb2_grpc
from fivedraw.history.v1 import history_service_pb2_grpc
from fivedraw.table.v1 import table_service_pb2_grpc
from fivedraw.wallet.v1 import wallet_service_pb2_grpc

from services.runtime.auth import SECOND_TOKEN_HEADER
from services.runtime.channel import connect
from services.runtime.errors import Fault
from services.runtime.settings import ServiceSettings

CALL_SECONDS: Final = 8.0


class Peers:
    """Channels to the four services. They carry no proof of a service: a call without a token gets nowhere."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._channels = [
            connect(address, settings, timeout=CALL_SECONDS)
            for address in (
                settings.table_address,
                settings.wallet_address,
                settings.history_address,
                settings.deck_address,
            )
        ]
        table, wallet, history, deck = self._channels
        self.table: Any = table_service_pb2_grpc.TableServiceStub(table)
        self.replicas: Any = table_service_pb2_grpc.ReplicaServiceStub(table)
        self.wallet: Any = wallet_service_pb2_grpc.WalletServiceStub(wallet)
        self.history: Any = history_service_pb2_grpc.HistoryServiceStub(history)
        self.deck: Any = deck_service_pb2_grpc.DeckServiceStub(deck)

    async def close(self) -> None:
        """Closes the channels."""
        for channel in self._channels:
            await channel.close()


def bearer(token: str, second: str = "") -> tuple[tuple[str, str], ...]:
    """The metadata of a call for a person, and for a second one who stands behind it."""
    own = (("authorization", f"Bearer {token}"),)
    return (*own, (SECOND_TOKEN_HEADER, second)) if second else own


def refusal(error: grpc.aio.AioRpcError) -> Fault:
    """What a failed call says, in the house's words."""
    return Fault.from_rpc(error) or Fault("SERVICE_UNAVAILABLE", f"the service does not answer ({error.code().name})")
