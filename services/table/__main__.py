"""Starts the table service: settings, stores, peers, sweeps, server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import grpc

from services.runtime import redis, server
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from services.runtime.settings import ServiceSettings
from services.runtime.tasks import CelerySender, make_app
from services.table import grpc_api, replica_api
from services.table.effects import Effects
from services.table.house import House
from services.table.parts import Parts
from services.table.ports import RpcDeck, RpcLedger
from services.table.redis_store import RedisStore
from services.table.registry import Registry
from services.table.replicas import Replicas
from services.table.templates import TemplateKeeper


async def main() -> None:
    """Runs until it is told to stop."""
    settings = ServiceSettings.load()
    clock = SystemClock()
    sealer = Sealer(settings.sealing_key_list())
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        migrations_folder=settings.migrations,
    )
    client = redis.connect(settings.redis_url.get_secret_value(), pool_size=settings.redis_pool_size)
    wallet = connect(settings.wallet_address, settings, as_service="table")
    deck = connect(settings.deck_address, settings, as_service="table")
    tasks = CelerySender(make_app(settings.broker_url.get_secret_value()))
    ledger, decks = RpcLedger(wallet), RpcDeck(deck)
    registry, store = Registry(database), RedisStore(client)
    effects = Effects(ledger, decks, registry=registry, store=store, clock=clock, tasks=tasks)
    house = House(Parts(store, registry, ledger, decks, effects, sealer, clock))

    replicas = Replicas(client, clock, lambda: house.tables_at_hand)
    telling: list[asyncio.Task[None]] = []

    def register(grpc_server: grpc.aio.Server) -> Sequence[str]:
        return [*grpc_api.register(house, sealer, grpc_server), replica_api.register(replicas, grpc_server)]

    async def on_start() -> None:
        await database.migrate("table")
        await house.start(TemplateKeeper(house).tend)
        telling.append(asyncio.create_task(replicas.run(), name="replica"))
        # What is there by now stays: no full pass of the collector needs to look at it again, and none takes as long.
        gc.collect()
        gc.freeze()

    async def on_stop() -> None:
        for task in telling:
            task.cancel()
        await asyncio.gather(*telling, return_exceptions=True)
        await replicas.leave()
        await house.stop()
        tasks.close()
        await wallet.close()
        await deck.close()
        store.close()
        await client.aclose()
        await database.close()

    await server.serve(
        "table", settings, register, on_start=on_start, on_stop=on_stop, told_to_stop=replicas.told_to_end
    )


if __name__ == "__main__":
    server.run(main())
