"""Starts the wallet service."""

from __future__ import annotations

import asyncio

from services.runtime import server
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet import auditing, grpc_api
from services.wallet.ledger import Ledger
from services.wallet.settings import WalletSettings
from services.wallet.sweeping import Sweeper


async def main() -> None:
    """Wires the wallet and serves until it is told to stop."""
    settings = WalletSettings.load()
    clock = SystemClock()
    db = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool_size,
        # The ledger takes its own row locks, in one order.
        isolation="READ COMMITTED",
        migrations_folder=settings.migrations,
    )
    ledger = Ledger(
        db,
        clock,
        lanes=1 if db.is_sqlite else settings.wallet_lanes,
        crowd_min=settings.wallet_crowd_min,
        group_max=settings.wallet_group_max,
        queue_max=settings.wallet_queue_max,
        group_wait_ms=settings.wallet_group_wait_ms,
        shard=settings.wallet_shard,
    )
    auditor = auditing.Auditor(
        db,
        clock,
        seal_interval_ms=settings.wallet_seal_interval_ms,
    )
    sweeper = Sweeper(
        db,
        ledger,
        clock,
        expiry_interval_ms=settings.wallet_expiry_interval_ms,
        sweep_interval_ms=settings.wallet_sweep_interval_ms,
    )
    background: list[asyncio.Task[None]] = []

    async def on_start() -> None:
        await db.migrate("wallet")
        background.extend(asyncio.create_task(each.run()) for each in (auditor, sweeper))

    async def on_stop() -> None:
        for task in background:
            await auditing.end(task)
        await ledger.close()
        await db.close()

    await server.serve(
        "wallet",
        settings,
        lambda grpc_server: grpc_api.register(ledger, auditor, grpc_server),
        on_start=on_start,
        on_stop=on_stop,
        clock=clock,
    )


if __name__ == "__main__":
    server.run(main())
