"""`fivedraw migrate`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from services.cli.commands.reach import data_option
from services.cli.house.folder import Folder
from services.runtime.database import Database

SERVICES = ("wallet", "deck", "table", "history")


@click.command("migrate")
@data_option
@click.option("--database-url", envvar="FIVEDRAW_DATABASE_URL", help="One service's database, instead of the folder's.")
@click.argument("services", nargs=-1, type=click.Choice(SERVICES))
def migrate_command(data: Path, database_url: str | None, services: Sequence[str]) -> None:
    """Bring the services' databases up to date (all of the folder's, or those named)."""
    if database_url is not None and len(services) != 1:
        raise click.UsageError("name the one service whose database --database-url is")
    folder = Folder.at(data)
    if database_url is None:
        folder.make()
    for service in services or SERVICES:
        asyncio.run(_migrate(database_url or folder.database_url(service), service))
        click.echo(f"{service}: up to date")


async def _migrate(url: str, service: str) -> None:
    database = Database(url)
    try:
        await database.migrate(service)
    finally:
        await database.close()
