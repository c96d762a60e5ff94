"""`fivedraw verify FILE`: checks an exported hand and its fairness proof, without asking the house anything."""

from __future__ import annotations

import sys
from typing import TextIO

import click

from services.deck.verification import verify_text

FILE_BYTES_MAX = 64 * 1024 * 1024


@click.command("verify")
@click.argument("file", type=click.File("r", encoding="utf-8"))
def verify_command(file: TextIO) -> None:
    """Verify a hand's fairness proof.

    FILE is a hand exported as structured JSON with its proof, or several, one a line; `-` reads standard input. Prints
    what is proved, what failed and where, and what cannot be known from the file. Exit status 1 if anything failed.
    """
    try:
        text = file.read(FILE_BYTES_MAX + 1)
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file.name} is no text in UTF-8: {error.reason} at byte {error.start}") from error
    if len(text) > FILE_BYTES_MAX:
        raise click.ClickException(f"the file is larger than {FILE_BYTES_MAX} characters")
    report = verify_text(text)
    for sentence in report.proved:
        click.echo(f"proved      {sentence}")
    for sentence in report.not_proved:
        click.echo(f"not proved  {sentence}")
    for sentence in report.failed:
        click.echo(f"FAILED      {sentence}")
    click.echo(f"{len(report.proved)} proved, {len(report.not_proved)} not proved, {len(report.failed)} failed")
    sys.exit(1 if report.failed else 0)
