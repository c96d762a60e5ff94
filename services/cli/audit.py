"""`fivedraw audit`: verifies a ledger's database, running or at rest, without changing it unless told to open it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from services.cli.commands.reach import data_option
from services.cli.house.folder import Folder
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet import auditing, closures
from services.wallet.commands import AuditReport
from services.wallet.entries import FAULTS_MAX


@click.command("audit")
@data_option
@click.option("--database-url", envvar="FIVEDRAW_DATABASE_URL", help="The wallet's database, instead of the folder's.")
@click.option(
    "--head", default="", metavar="HEX", help="A head that was written down earlier: it must be in the chain."
)
@click.option("--reopen", is_flag=True, help="If it is clean, open what is closed for new hands.")
def audit_command(data: Path, database_url: str | None, head: str, reopen: bool) -> None:
    """Verify the ledger of a data folder.

    Checks the chain of hashes, every batch, transfer, balance and hand. Names what is wrong, the first fault first;
    exit status 1 if anything is, 3 if nothing is and new hands are refused all the same. What each fault means is in
    docs/ledger.md.
    """
    url = database_url or Folder.at(data).database_url("wallet")
    try:
        file = make_url(url).database if url.startswith("sqlite") else None
        if file is not None and not Path(file).is_file():
            raise click.ClickException(f"there is no ledger at {file}")
        report, closed = asyncio.run(_examine(url, head.strip().lower(), reopen=reopen))
    except (ArgumentError, DBAPIError) as error:
        raise click.ClickException(f"the ledger cannot be read: {str(error).splitlines()[0]}") from error
    for fault in report.faults:
        click.echo(fault)
    click.echo(f"{report.entries_checked} entries, head {report.head}: {_verdict(report)}")
    if not report.clean:
        _tell(closed, "closed for new hands, until a clean audit")
        sys.exit(1)
    if reopen:
        _tell(closed, "open again, having been closed")
    elif closed:
        _tell(closed, "closed for new hands")
        click.echo("to open: fivedraw audit --reopen, or AuditLedger by finance or an auditor (console: Ledger, Audit)")
        sys.exit(3)


def _tell(closed: dict[str, str], how: str) -> None:
    for table, reason in closed.items():
        what = f"table {table}" if table else "the ledger"
        click.echo(f"{what} is {how}: {reason}")


def _verdict(report: AuditReport) -> str:
    if report.clean:
        return "clean"
    counted = f"{len(report.faults)} faults" if len(report.faults) < FAULTS_MAX else f"{FAULTS_MAX} or more"
    return f"NOT clean, {counted}, the first {report.faults[0].partition(':')[0]}"


async def _examine(url: str, head: str, *, reopen: bool) -> tuple[AuditReport, dict[str, str]]:
    database = Database(url, pool_size=1)
    try:
        report, closed = await database.read(auditing.examine, head)
        if reopen and report.clean:
            await database.write(closures.reopen, closed, SystemClock().now_ms())
        return report, closed
    finally:
        await database.close()
