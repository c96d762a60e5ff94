"""`fivedraw hand` and `fivedraw hands`: finished hands on the screen or as files, as one viewer may see them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import grpc
from fivedraw.history.v1 import history_service_pb2 as pb
from fivedraw.table.v1 import table_pb2
from fivedraw_client import Client
from fivedraw_client.errors import from_rpc
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.table import Table

from services.cli.commands.reach import Reach, data_option, reach_of, run

FORMATS: Final = {
    "text": pb.HAND_FORMAT_TEXT,
    "tracker": pb.HAND_FORMAT_TRACKER,
    "json": pb.HAND_FORMAT_JSON,
    "phh": pb.HAND_FORMAT_PHH,
    "scenario": pb.HAND_FORMAT_SCENARIO,
}
LISTED_DEFAULT: Final = 50
EXPORT_SECONDS: Final = 600.0
WIDTH_OF_PIPES: Final = 160

_SHORT_NAME: Final = re.compile(r"([a-z0-9-]{1,40})/([0-9]{1,18})")

_target = click.option("--target", metavar="HOST:PORT", help="A house elsewhere, instead of the folder's own.")
_ca = click.option("--ca", type=click.Path(exists=True, path_type=Path), help="Certificates to trust; turns TLS on.")
_token = click.option("--token", envvar="FIVEDRAW_TOKEN", help="Bearer token of the caller.")
_viewer = click.option("--viewer", metavar="PLAYER", help="Read as this player (with the folder's key).")
_format = click.option("--format", "form", type=click.Choice(list(FORMATS)), help="The format.")
_proof = click.option("--proof", is_flag=True, help="With the fairness proofs that `fivedraw verify` checks (json).")


@click.command("hand")
@click.argument("name")
@data_option
@_target
@_ca
@_token
@_viewer
@_format
@_proof
def hand_command(
    name: str,
    *,
    data: Path,
    target: str | None,
    ca: Path | None,
    token: str | None,
    viewer: str | None,
    form: str | None,
    proof: bool,
) -> None:
    """Print one finished hand: NAME is `tables/red/hands/7`, `red/7`, or the hand's own number."""
    chosen = form or ("json" if proof else "text")
    _check_proof(chosen, proof)
    reach = _reach(data=data, target=target, ca=ca, token=token, viewer=viewer, form=chosen)
    click.echo(run(lambda: _export_one(reach, full_name(name), FORMATS[chosen], proof)), nl=False)


@click.command("hands")
@data_option
@_target
@_ca
@_token
@_viewer
@_format
@_proof
@click.option("--table", default="", help="Only this table.")
@click.option("--player", default="", help="Only this player's hands.")
@click.option("--rulebook", default="", help="Only this rulebook.")
@click.option("--from", "begin", type=click.DateTime(), help="Only hands that ended at or after this time (UTC).")
@click.option("--to", "end", type=click.DateTime(), help="Only hands that ended before this time (UTC).")
@click.option("--min-pot", type=click.IntRange(0), default=0, help="Only pots of at least this, minor units (lists).")
@click.option("--limit", type=click.IntRange(1), help=f"Most hands; {LISTED_DEFAULT} in a list, all in a file.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where to write: a file; or, for scenarios, a folder of one file a hand unless it ends in .jsonl.",
)
def hands_command(
    *,
    data: Path,
    target: str | None,
    ca: Path | None,
    token: str | None,
    viewer: str | None,
    form: str | None,
    proof: bool,
    table: str,
    player: str,
    rulebook: str,
    begin: datetime | None,
    end: datetime | None,
    min_pot: int,
    limit: int | None,
    out: Path | None,
) -> None:
    """List finished hands, newest first; with --format, write them, oldest first."""
    _check_proof(form, proof)
    reach = _reach(data=data, target=target, ca=ca, token=token, viewer=viewer, form=form)
    wanted = pb.ListHandsRequest(
        table=_prefixed("tables", table),
        player=_prefixed("players", player),
        rulebook=_prefixed("rulebooks", rulebook),
        from_time=_stamp(begin),
        to_time=_stamp(end),
        min_pot_minor=min_pot,
    )
    if form is None:
        if out is not None:
            raise click.UsageError("--out needs a --format")
        run(lambda: _show_list(reach, wanted, limit or LISTED_DEFAULT))
        return
    if min_pot:
        raise click.UsageError("--min-pot is for lists; a file takes --table, --player, --rulebook, --from and --to")
    try:
        written, left_out = run(lambda: _export_range(reach, wanted, FORMATS[form], limit or 0, out, with_proof=proof))
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from error
    told = f"{written} hands written"
    click.echo(
        told + (f", {left_out} left out: not due yet, or this format has no words for them" if left_out else ""),
        err=True,
    )


def full_name(name: str) -> str:
    """The resource name of what a person wrote: `red/7` and a plain number are short forms."""
    short = _SHORT_NAME.fullmatch(name)
    if short is not None:
        return f"tables/{short[1]}/hands/{short[2]}"
    return f"hands/{name}" if name.isdigit() else name


def _check_proof(form: str | None, proof: bool) -> None:
    if proof and form != "json":
        raise click.UsageError("--proof goes with --format json")


def _reach(
    *, data: Path, target: str | None, ca: Path | None, token: str | None, viewer: str | None, form: str | None
) -> Reach:
    if viewer is not None and token is not None:
        raise click.UsageError("--viewer makes a token of its own; give it or --token")
    subject = (viewer or "").removeprefix("players/")
    if viewer is not None:
        return reach_of(data, target, ca, token, subject=subject, role="player")
    role = "auditor" if form == "scenario" else "operator"
    return reach_of(data, target, ca, token, subject=f"cli-{role}", role=role)


def _prefixed(collection: str, name: str) -> str:
    return f"{collection}/{name.removeprefix(f'{collection}/')}" if name else ""


def _stamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment.replace(tzinfo=UTC))
    return stamp


async def _export_one(reach: Reach, name: str, form: pb.HandFormat.ValueType, with_proof: bool) -> str:
    async with reach.client() as client:
        return await client.export_hand(name, form, with_proof=with_proof)


async def _show_list(reach: Reach, request: pb.ListHandsRequest, limit: int) -> None:
    shown = Table("hand", "number", "rulebook", "ended (UTC)", "outcome", "pot", "net", "currency")
    async with reach.client() as client:
        async for hand in _listed(client, request, limit):
            outcome = table_pb2.HandOutcome.Name(hand.outcome).removeprefix("HAND_OUTCOME_").lower()
            shown.add_row(
                hand.name.removeprefix("tables/").replace("/hands/", "/"),
                str(hand.hand_id),
                hand.rulebook.removeprefix("rulebooks/"),
                hand.end_time.ToDatetime().isoformat(sep=" ", timespec="seconds"),
                "incomplete" if hand.incomplete else outcome,
                str(hand.pot_minor),
                str(hand.net_minor),
                hand.currency,
            )
    console = Console()
    # In a pipe there is no width to fit, and a number that is cut short is no number.
    (console if console.is_terminal else Console(width=WIDTH_OF_PIPES)).print(shown)


async def _listed(client: Client, request: pb.ListHandsRequest, limit: int) -> AsyncIterator[pb.HandSummary]:
    given = 0
    while True:
        page = await client.caller.call(client.history.ListHands, request)
        for hand in page.hands:
            yield hand
            given += 1
            if given == limit:
                return
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


async def _export_range(
    reach: Reach,
    wanted: pb.ListHandsRequest,
    form: pb.HandFormat.ValueType,
    limit: int,
    out: Path | None,
    *,
    with_proof: bool,
) -> tuple[int, int]:
    request = pb.ExportHandsRequest(
        format=form,
        table=wanted.table,
        player=wanted.player,
        rulebook=wanted.rulebook,
        from_time=wanted.from_time,
        to_time=wanted.to_time,
        max_hands=limit,
        with_proof=with_proof,
    )
    written = left_out = 0
    async with reach.client() as client:
        writer = _writer(form, out)
        try:
            call = client.history.ExportHands(request, metadata=client.caller.metadata(), timeout=EXPORT_SECONDS)
            async for piece in call:
                writer.write(piece.text)
                written += piece.hands
                left_out += piece.left_out
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from error
        finally:
            writer.close()
    return written, left_out


class _ToStream:
    """Writes pieces to a file, or to the screen."""

    def __init__(self, out: Path | None) -> None:
        self._stream = sys.stdout if out is None else out.open("w", encoding="utf-8", newline="\n")
        self._is_file = out is not None

    def write(self, text: str) -> None:
        """Appends a piece."""
        self._stream.write(text)

    def close(self) -> None:
        """Closes the file."""
        if self._is_file:
            self._stream.close()
        else:
            self._stream.flush()


class _ToFolder:
    """Writes each line, one scenario, to a file of its own, which `fivedraw scenario` takes."""

    def __init__(self, out: Path) -> None:
        self._folder = out
        out.mkdir(parents=True, exist_ok=True)

    def write(self, text: str) -> None:
        """Writes the scenarios of a piece."""
        for line in text.splitlines():
            scenario = json.loads(line)
            path = self._folder / f"{scenario['name']}.json"
            path.write_text(json.dumps(scenario, indent=1) + "\n", encoding="utf-8")

    def close(self) -> None:
        """Each file is closed already."""


def _writer(form: int, out: Path | None) -> _ToStream | _ToFolder:
    if form == pb.HAND_FORMAT_SCENARIO and out is not None and out.suffix != ".jsonl":
        return _ToFolder(out)
    return _ToStream(out)
