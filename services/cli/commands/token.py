"""`fivedraw token`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from services.cli.commands.reach import data_option
from services.cli.house.folder import Folder, FolderError
from services.cli.house.keys import existing

HOURS_DEFAULT = 24.0
HOURS_MAX = 24.0 * 366

_SUBJECT = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@click.command("token")
@data_option
@click.option("--subject", required=True, help="Who calls; for a player, the player's id.")
@click.option("--role", type=click.Choice(["player", "viewer", "operator", "finance", "auditor"]), required=True)
@click.option("--hours", type=click.FloatRange(0, HOURS_MAX, min_open=True), default=HOURS_DEFAULT, show_default=True)
def token_command(data: Path, subject: str, role: str, hours: float) -> None:
    """Print a bearer token, signed with the folder's key."""
    if not _SUBJECT.fullmatch(subject):
        raise click.UsageError("a subject is 1 to 63 of a-z, 0-9, - and _, and begins with a letter or digit")
    try:
        keys = existing(Folder.at(data))
    except FolderError as error:
        raise click.ClickException(str(error)) from error
    click.echo(keys.mint(subject, role, seconds=max(1, round(hours * 3600))))
