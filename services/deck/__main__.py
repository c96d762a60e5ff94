"""Starts the deck service: settings, database, decks, server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from services.deck import grpc_api, metrics
from services.deck.decks import Decks
from services.deck.settings import DeckSettings
from services.runtime import server
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer


async def main() -> None:
    """Runs until it is told to stop."""
    settings = DeckSettings.load()
    clock = SystemClock()
    # Steps lock their table's rows themselves, which spares PostgreSQL the bookkeeping of serializable reads.
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        isolation="READ COMMITTED",
        migrations_folder=settings.migrations,
    )
    decks = Decks(database, clock, Sealer(settings.sealing_key_list()), seed_delay_ms=settings.deck_seed_delay_ms)

    rotation: list[asyncio.Task[int]] = []

    async def on_start() -> None:
        await database.migrate("deck")
        metrics.show(decks)
        decks.self_test()
        # After a change of keys this may take a while, and nobody needs to wait for it.
        rotation.append(asyncio.create_task(decks.rotate_keys(), name="deck-keys"))

    async def on_stop() -> None:
        for task in rotation:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await decks.close()
        await database.close()

    await server.serve("deck", settings, partial(grpc_api.register, decks), on_start=on_start, on_stop=on_stop)


if __name__ == "__main__":
    server.run(main())
