"""How a command reaches a house: through its data folder, or by address and token."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import click
from fivedraw_client import Client, Endpoints, FivedrawError, RetryPolicy

from services.cli.house.folder import Folder, FolderError
from services.cli.house.keys import existing
from services.cli.house.ports import address

P = ParamSpec("P")
T = TypeVar("T")

# A person at a prompt waits about a second for a house that does not answer.
SHORT: Final = RetryPolicy(attempts=4, first_delay=0.1, last_delay=0.5)


@dataclass(frozen=True, slots=True)
class Reach:
    """A house's addresses, and the token of whoever calls."""

    endpoints: list[Endpoints]
    token: str

    def client(self) -> Client:
        """A connection to the first address."""
        return Client(self.endpoints[0], self.token, policy=SHORT)


def house_endpoints(folder: Folder) -> list[Endpoints]:
    """Where the embedded house of a folder answers, one for each table replica."""
    ports = folder.remembered_ports()
    return [Endpoints(address(port), address(ports["wallet"]), address(ports["history"])) for port in ports["tables"]]


def reach_of(data: Path, target: str | None, ca: Path | None, token: str | None, *, subject: str, role: str) -> Reach:
    """The house meant by a command's options. Raises `click.UsageError` where they do not say which, or who calls."""
    if target is not None:
        if token is None:
            raise click.UsageError("--target needs a token: --token, or FIVEDRAW_TOKEN")
        roots = ca.read_bytes() if ca is not None else None
        return Reach([Endpoints.single(target, tls=roots is not None, roots=roots)], token)
    folder = Folder.at(data)
    try:
        return Reach(house_endpoints(folder), token or existing(folder).mint(subject, role))
    except FolderError as error:
        raise click.ClickException(str(error)) from error


def options_of_reach(role: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds `--data`, `--target`, `--ca` and `--token` to a command, which gets a `Reach` as `reach`.

    Without a token, the folder's key makes one for a caller in `role`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @data_option
        @click.option("--target", metavar="HOST:PORT", help="A house elsewhere, instead of the folder's own.")
        @click.option("--ca", type=click.Path(exists=True, path_type=Path), help="Certificates to trust; turns TLS on.")
        @click.option("--token", envvar="FIVEDRAW_TOKEN", help="Bearer token of the caller.")
        @functools.wraps(command)
        def with_reach(data: Path, target: str | None, ca: Path | None, token: str | None, **options: Any) -> Any:
            reach = reach_of(data, target, ca, token, subject=f"cli-{role}", role=role)
            return command(reach=reach, **options)

        return with_reach

    return decorate


data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".data"),
    show_default=True,
    help="Data folder of an embedded house.",
)


def run(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a command's coroutine; a refusal becomes a message and exit status 1."""
    try:
        return asyncio.run(call())
    except FivedrawError as error:
        raise click.ClickException(str(error)) from error
