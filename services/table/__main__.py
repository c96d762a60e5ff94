"""Starts the table service: settings, stores, peers, sweeps, server."""

from __future__ import annotations

from functools import partial

from services.runtime import redis, server
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from services.runtime.settings import ServiceSettings
from services.runtime.tasks import CelerySender, make_app
from services.table import grpc_api
from services.table.effects import Effects
from services.table.house import House
from services.table.parts import Parts
from services.table.ports import RpcDeck, RpcLedger
from services.table.redis_store import RedisStore
from services.table.registry import Registry
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

    async def on_start() -> None:
        await database.migrate("table")
        await house.start(TemplateKeeper(house).tend)

    async def on_stop() -> None:
        await house.stop()
        tasks.close()
        await wallet.close()
        await deck.close()
        await client.aclose()
        await database.close()

    await server.serve("table", settings, partial(grpc_api.register, house, sealer), on_start=on_start, on_stop=on_stop)


if __name__ == "__main__":
    server.run(main())
