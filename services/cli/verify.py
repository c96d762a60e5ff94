"""`fivedraw verify FILE`: checks an exported hand and its fairness proof, without asking the house anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, TextIO

import click

from services.deck.verification import Report, verify_lines

# What is held of a file at once: a hand of a file with one a line, or all of a file that is one indented object.
# The history stores no hand beyond 16 MiB.
HAND_CHARACTERS_MAX: Final = 64 * 1024 * 1024


@click.command("verify")
@click.argument("file", type=click.File("r", encoding="utf-8"))
def verify_command(file: TextIO) -> None:
    """Verify a hand's fairness proof.

    FILE is a hand exported as structured JSON with its proof, or several, one a line; `-` reads standard input. Prints
    what is proved, what failed and where, and what cannot be known from the file. A file of many hands may have any
    length, a hand at most 64 Mi characters. Exit status 1 if anything failed.
    """
    counts = [0, 0, 0]
    first = _read_line(file)
    is_one_object = first.lstrip() == "{\n"
    for report in verify_lines([_rest(file, first)] if is_one_object else _lines(file, first)):
        _tell(report, with_name=not is_one_object)
        found = (report.proved, report.not_proved, report.failed)
        counts = [count + len(sentences) for count, sentences in zip(counts, found, strict=True)]
    click.echo(f"{counts[0]} proved, {counts[1]} not proved, {counts[2]} failed")
    sys.exit(1 if counts[2] else 0)


def _tell(report: Report, with_name: bool) -> None:
    if with_name and report.name:
        click.echo(f"{report.name}:")
    for sentence in report.proved:
        click.echo(f"proved      {sentence}")
    for sentence in report.not_proved:
        click.echo(f"not proved  {sentence}")
    for sentence in report.failed:
        click.echo(f"FAILED      {sentence}")


def _lines(file: TextIO, first: str) -> Iterator[str]:
    line = first
    while line:
        yield line
        line = _read_line(file)


def _read_line(file: TextIO) -> str:
    try:
        line = file.readline(HAND_CHARACTERS_MAX + 1)
    except UnicodeDecodeError as error:
        raise _no_text(file, error) from error
    if len(line) > HAND_CHARACTERS_MAX:
        raise click.ClickException(f"a hand has more than {HAND_CHARACTERS_MAX} characters")
    return line


def _rest(file: TextIO, first: str) -> str:
    try:
        text = first + file.read(HAND_CHARACTERS_MAX + 1)
    except UnicodeDecodeError as error:
        raise _no_text(file, error) from error
    if len(text) > HAND_CHARACTERS_MAX:
        raise click.ClickException(f"the hand has more than {HAND_CHARACTERS_MAX} characters")
    return text


def _no_text(file: TextIO, error: UnicodeDecodeError) -> click.ClickException:
    return click.ClickException(f"{file.name} is no text in UTF-8: {error.reason} at byte {error.start}")
