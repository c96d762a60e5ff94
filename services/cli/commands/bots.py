"""`fivedraw bots`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sys
from pathlib import Path

import click
from fivedraw_client import Endpoints

from services.cli.bots.crew import PLAYERS_DEFAULT, BotTable, Crew
from services.cli.bots.pace import PACES
from services.cli.commands.reach import data_option, house_endpoints, run
from services.cli.house.folder import Folder, FolderError
from services.cli.house.keys import Minter, existing

LOOK_SECONDS = 0.5


@click.command("bots")
@data_option
@click.option("--target", metavar="HOST:PORT", help="A house elsewhere; the folder's key still makes the tokens.")
@click.option("--ca", type=click.Path(exists=True, path_type=Path), help="Certificates to trust; turns TLS on.")
@click.option("--tables", "names", required=True, help="Ids of tables, comma-separated; `id=rulebook` opens a new one.")
@click.option("--players", type=click.IntRange(1, 9), default=PLAYERS_DEFAULT, show_default=True, help="Bots a table.")
@click.option("--hands", type=click.IntRange(0), default=0, help="End after this many hands.")
@click.option("--for", "seconds", type=click.FloatRange(0), default=0, help="End after this many seconds.")
@click.option("--speed", type=click.Choice(list(PACES)), default="brisk", show_default=True)
@click.option("--seed", type=int, help="Steers what the bots do.")
def bots_command(
    *,
    data: Path,
    target: str | None,
    ca: Path | None,
    names: str,
    players: int,
    hands: int,
    seconds: float,
    speed: str,
    seed: int | None,
) -> None:
    """Let bots play tables over the public API.

    Prints what they counted, and ends with status 1 if a stream had a gap, a card was told too early, or a hand or
    card came twice.
    """
    chosen = seed if seed is not None else random.SystemRandom().getrandbits(32)
    folder = Folder.at(data)
    try:
        roots = ca.read_bytes() if ca is not None else None
        endpoints = (
            house_endpoints(folder) if target is None else [Endpoints.single(target, tls=ca is not None, roots=roots)]
        )
        crew = Crew(endpoints, Minter(existing(folder)), tables_of(names, players), pace=PACES[speed], seed=chosen)
    except FolderError as error:
        raise click.ClickException(str(error)) from error
    run(lambda: _play(crew, hands, seconds))
    faults = [*crew.gaps(), *crew.leaks(), *crew.faults()]
    summary = {
        "seed": chosen,
        "hands": crew.hands,
        "actions": crew.actions,
        "errors": crew.errors,
        "hands_by_rulebook": crew.hands_by_rulebook(),
        "outcomes": crew.outcomes(),
        "bot_actions": crew.own_actions(),
        "refusals": crew.refusals(),
        "faults": faults,
    }
    click.echo(json.dumps(summary, indent=2))
    sys.exit(1 if faults else 0)


def tables_of(names: str, players: int) -> list[BotTable]:
    """Reads `id,id=rulebook,…`."""
    tables = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        table_id, _, rulebook = name.partition("=")
        tables.append(BotTable(table_id.removeprefix("tables/"), rulebook, players))
    return tables


async def _play(crew: Crew, hands: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    ending = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, ending.set)
    await crew.open()
    playing = asyncio.create_task(crew.run())
    limit = loop.time() + seconds if seconds else float("inf")
    try:
        while not ending.is_set() and loop.time() < limit and not (hands and crew.hands >= hands):
            if playing.done():
                playing.result()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await ending.wait()
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        await crew.close()
