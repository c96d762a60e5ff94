"""`python -m services.history`: the gRPC service that reads the history."""

from __future__ import annotations

import grpc

from services.history.grpc_api import add_to
from services.history.peers import DeckProofs
from services.history.reading import HandReader
from services.history.settings import HistorySettings
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from services.runtime.server import run, serve


async def main() -> None:
    """Wires the service and serves until it is told to stop."""
    settings = HistorySettings.load()
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        isolation="READ COMMITTED",
        migrations_folder=settings.migrations,
    )
    deck = connect(settings.deck_address, settings, as_service="history")
    reader = HandReader(
        database,
        Sealer(settings.sealing_key_list()),
        SystemClock(),
        audit_delay_ms=settings.deck_seed_delay_ms,
        proofs=DeckProofs(deck),
    )

    def register(server: grpc.aio.Server) -> list[str]:
        return add_to(server, reader)

    async def on_start() -> None:
        await database.migrate("history")

    async def on_stop() -> None:
        await deck.close()
        await database.close()

    await serve("history", settings, register, on_start=on_start, on_stop=on_stop)


if __name__ == "__main__":
    run(main())
