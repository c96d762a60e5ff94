"""`fivedraw up`."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path

import click

from services.cli.bots.crew import PLAYERS_DEFAULT, RULEBOOKS
from services.cli.bots.pace import PACES
from services.cli.commands.reach import data_option
from services.cli.house.display import display_on
from services.cli.house.folder import Folder, FolderError
from services.cli.house.ports import DEFAULT_BASE, TABLE_REPLICAS_MAX, Ports
from services.cli.house.up import House, UpOptions

TABLES_DEFAULT = 3
TABLES_MAX = 500
# Exit status 1 is for a broken promise.
CANNOT_START = 2


@click.command("up")
@data_option
@click.option("--port-base", type=click.IntRange(1024, 65_000), default=DEFAULT_BASE, show_default=True)
@click.option("--table-replicas", type=click.IntRange(1, TABLE_REPLICAS_MAX), default=1, show_default=True)
@click.option("--tables", type=click.IntRange(0, TABLES_MAX), default=TABLES_DEFAULT, show_default=True)
@click.option("--players", type=click.IntRange(2, 9), default=PLAYERS_DEFAULT, show_default=True, help="Bots a table.")
@click.option("--rulebooks", default=",".join(RULEBOOKS), show_default=True, help="The tables take these in turn.")
@click.option("--hands", type=click.IntRange(0), default=0, help="End after this many hands.")
@click.option("--for", "seconds", type=click.FloatRange(0), default=0, help="End after this many seconds.")
@click.option("--speed", type=click.Choice(list(PACES)), default="brisk", show_default=True, help="How fast bots are.")
@click.option("--seed", type=int, help="Steers what the bots do, never the cards.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option(
    "--seed-delay-ms",
    type=click.IntRange(0),
    envvar="FIVEDRAW_DECK_SEED_DELAY_MS",
    help="From a hand's end until auditors may read all its cards and its seed; a day if not given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a summary for machines at the end.")
def up_command(
    *,
    data: Path,
    port_base: int,
    table_replicas: int,
    tables: int,
    players: int,
    rulebooks: str,
    hands: int,
    seconds: float,
    speed: str,
    seed: int | None,
    log_level: str,
    seed_delay_ms: int | None,
    as_json: bool,
) -> None:
    """Start a whole casino on this machine, with bots at its tables.

    It runs until Ctrl-C, or for the hands or seconds asked for; another `up` on the same folder goes on where it
    ended. The exit status is 1 if a promise of the house was broken, 2 if the house
    could not be started.
    """
    chosen = seed if seed is not None else random.SystemRandom().getrandbits(32)
    stream = sys.stderr if as_json else sys.stdout
    try:
        options = UpOptions(
            folder=Folder.at(data),
            ports=Ports(port_base, table_replicas),
            tables=tables,
            players=players,
            rulebooks=[name.strip() for name in rulebooks.split(",") if name.strip()],
            hands=hands,
            seconds=seconds,
            speed=speed,
            log_level=log_level,
            seed=chosen,
            seed_delay_ms=seed_delay_ms,
        )
        with display_on(stream) as display:
            display.say(f"bots' seed {chosen}")
            figures = asyncio.run(House(options, display).run())
    except (FolderError, ValueError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(CANNOT_START)
    for fault in figures.faults:
        click.echo(f"BROKEN: {fault}", err=True)
    if as_json:
        click.echo(json.dumps(figures.summary(), indent=2))
    else:
        click.echo(f"{figures.hands} hands, {figures.actions} actions, {figures.histories} histories")
    sys.exit(0 if figures.ok else 1)
