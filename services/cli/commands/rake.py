"""`fivedraw rake`: the house's rake, added up by rulebook, table or day.

The ledger tells the rake by table and day, and knows no rulebooks; the table service tells each table's, which never
changes. This joins the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

import click
from fivedraw.table.v1 import table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2
from fivedraw_client import Client
from rich.console import Console
from rich.table import Table

from services.cli.commands.reach import Reach, options_of_reach, run

DAYS_MAX: Final = 366
_PAGE: Final = 200
UNKNOWN: Final = "(unknown)"

_DAY: Final = click.DateTime(formats=["%Y-%m-%d"])


@click.command("rake")
@options_of_reach("operator")
@click.option("--since", type=_DAY, help="First day (UTC); 30 days ago if left out.")
@click.option("--before", type=_DAY, help="The day after the last one; tomorrow if left out.")
@click.option(
    "--by",
    type=click.Choice(["rulebook", "table", "day"]),
    multiple=True,
    default=("rulebook",),
    show_default=True,
    help="What to add up by; may be given several times.",
)
def rake_command(reach: Reach, since: datetime | None, before: datetime | None, by: tuple[str, ...]) -> None:
    """Show the rake by rulebook, table or day, from the ledger's entries to the unit."""
    today = datetime.now(UTC).date()
    last = before.date() if before else today + timedelta(days=1)
    first = since.date() if since else min(today, last) - timedelta(days=30)
    if not 0 < (last - first).days <= DAYS_MAX:
        raise click.UsageError(f"--since and --before must be 1 to {DAYS_MAX} days apart")
    rows, rulebooks = run(lambda: _read(reach, first, last))
    shown = Table(*by, "currency", "rake (minor units)", "raked hands")
    for (*parts, currency), (rake, hands) in add_up(rows, rulebooks, by).items():
        shown.add_row(*parts, currency, str(rake), str(hands))
    Console().print(shown)


def add_up(
    rows: Sequence[wallet_service_pb2.RakeRow], rulebooks: Mapping[str, str], by: Sequence[str]
) -> dict[tuple[str, ...], tuple[int, int]]:
    """Rake (minor units) and raked hands by what is asked for and the currency, in its order.

    `rulebooks` has the rulebook of each table (`tables/{table}`); one that it does not have is `UNKNOWN`.
    """
    rake: Counter[tuple[str, ...]] = Counter()
    hands: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        parts = {"table": row.table, "day": row.day, "rulebook": rulebooks.get(row.table, UNKNOWN)}
        key = (*(parts[name] for name in by), row.currency)
        rake[key] += row.rake_minor
        hands[key] += row.hands
    return {key: (rake[key], hands[key]) for key in sorted(rake)}


async def _read(reach: Reach, first: date, last: date) -> tuple[list[wallet_service_pb2.RakeRow], dict[str, str]]:
    async with reach.client() as client:
        rows = [row async for row in _rake(client, first, last)]
        rulebooks = {name: rulebook async for name, rulebook in _rulebooks(client)}
    return rows, rulebooks


async def _rake(client: Client, first: date, last: date) -> AsyncIterator[wallet_service_pb2.RakeRow]:
    """All rows; a report that was cut off is asked for again in two halves of its time."""
    request = wallet_service_pb2.GetRakeReportRequest()
    request.since.FromDatetime(_midnight(first))
    request.before.FromDatetime(_midnight(last))
    report = await client.caller.call(client.wallet.GetRakeReport, request)
    days = (last - first).days
    if not report.truncated:
        for row in report.rows:
            yield row
        return
    if days == 1:
        raise click.ClickException(f"more tables than one report holds took rake on {first}")
    middle = first + timedelta(days=days // 2)
    for start, end in ((first, middle), (middle, last)):
        async for row in _rake(client, start, end):
            yield row


async def _rulebooks(client: Client) -> AsyncIterator[tuple[str, str]]:
    """Each table's rulebook by its name, closed tables too."""
    request = table_service_pb2.ListTablesRequest(page_size=_PAGE, show_closed=True)
    while True:
        page = await client.caller.call(client.tables.ListTables, request)
        for table in page.tables:
            yield table.name, table.rulebook.removeprefix("rulebooks/")
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
