"""`fivedraw tables`."""

from __future__ import annotations

import click
from fivedraw.table.v1 import table_pb2
from rich.console import Console
from rich.table import Table

from services.cli.commands.reach import Reach, options_of_reach, run


@click.command("tables")
@options_of_reach("operator")
@click.option("--rulebook", default="", help="Only tables of this rulebook.")
@click.option("--free", is_flag=True, help="Only tables with a seat free.")
def tables_command(reach: Reach, rulebook: str, free: bool) -> None:
    """List the tables of a house."""
    tables = run(lambda: _list(reach, rulebook, free))
    shown = Table("table", "rulebook", "seats", "hand", "state", "currency")
    for table in tables:
        seats = f"{table.seats_taken}/{table.options.seats}"
        state = table_pb2.TableState.Name(table.state).removeprefix("TABLE_STATE_").lower()
        shown.add_row(
            table.name, table.rulebook.removeprefix("rulebooks/"), seats, str(table.hand), state, table.currency
        )
    Console().print(shown)


async def _list(reach: Reach, rulebook: str, free: bool) -> list[table_pb2.Table]:
    named = f"rulebooks/{rulebook.removeprefix('rulebooks/')}" if rulebook else ""
    async with reach.client() as client:
        return [table async for table in client.list_tables(rulebook=named, seats_free=free)]
