"""A house of five hundred tables that all change all the time, as far as a console can tell, and the console before it.

Only what the console asks is answered: no table is played. So what is measured is the console and its page alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
from fivedraw.deck.v1 import deck_service_pb2 as deck_pb
from fivedraw.deck.v1 import deck_service_pb2_grpc as deck_rpc
from fivedraw.table.v1 import event_pb2, table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as rpc
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as wallet_rpc

from tests.servers import free_port

# Each table changes so often, which is quicker than hands end.
CHANGE_SECONDS = 1.0
START_SECONDS = 60
# This one does not move, in the middle of a hand, since long before anybody looks; its place by name is far down.
STILL = 321
STILL_SECONDS = 200


def row(number: int, hand: int) -> table_pb2.Table:
    """A table as the lobby lists it; the one that stands still is at its first hand for ever."""
    hand = 1 if number == STILL else hand
    return table_pb2.Table(
        name=f"tables/crowd-{number}",
        display_name=f"Crowd {number}",
        rulebook="rulebooks/house",
        currency="EUR",
        state=table_pb2.TABLE_STATE_OPEN,
        seats_taken=number % 7,
        hand=hand,
        hands_per_hour=hand % 90,
        average_pot_minor=100 * number + hand,
        options=table_pb2.GameOptions(
            seats=6, betting=table_pb2.BETTING_NO_LIMIT, small_blind_minor=100, big_blind_minor=200
        ),
    )


class CrowdedTables(rpc.TableServiceServicer):
    """The lobby of such a house."""

    def __init__(self, tables: int) -> None:
        self._tables = tables
        self._still_since_ms = int((time.time() - STILL_SECONDS) * 1000)

    async def GetTable(self, request: pb.GetTableRequest, context: Any) -> pb.GetTableResponse:
        number = int(request.name.rpartition("-")[2])
        view = table_pb2.TableView(table=row(number, 1), hand=1, sequence=20, stage=table_pb2.STAGE_FIRST_ROUND)
        if number == STILL:
            view.waiting = table_pb2.WAITING_WALLET
        else:
            view.turn.seat = 1
            view.turn.deadline.FromMilliseconds(int((time.time() + 60) * 1000))
        return pb.GetTableResponse(view=view)

    async def WatchTable(self, request: pb.WatchTableRequest, context: Any) -> AsyncIterator[pb.WatchTableResponse]:
        event = event_pb2.TableEvent(sequence=request.resume_after + 1, hand=1)
        event.commit_time.FromMilliseconds(self._still_since_ms)
        yield pb.WatchTableResponse(events=[event])
        await asyncio.Event().wait()

    async def ListTables(self, request: pb.ListTablesRequest, context: Any) -> pb.ListTablesResponse:
        first = int(request.page_token or 0)
        last = min(first + request.page_size, self._tables)
        token = str(last) if last < self._tables else ""
        return pb.ListTablesResponse(tables=[row(each, 1) for each in range(first, last)], next_page_token=token)

    async def WatchLobby(self, request: pb.WatchLobbyRequest, context: Any) -> AsyncIterator[pb.WatchLobbyResponse]:
        hand = 1
        while True:
            yield pb.WatchLobbyResponse(tables=[row(each, hand) for each in range(self._tables)], complete=hand == 1)
            await asyncio.sleep(CHANGE_SECONDS)
            hand += 1


class Ledger(wallet_rpc.WalletServiceServicer):
    """A ledger in balance."""

    async def GetLedgerSummary(self, request: Any, context: Any) -> wallet_pb.GetLedgerSummaryResponse:
        return wallet_pb.GetLedgerSummaryResponse(imbalance=[wallet_pb.Balance(currency="EUR")], batches=1)


class Deck(deck_rpc.DeckServiceServicer):
    """A healthy deck."""

    async def GetRngHealth(self, request: Any, context: Any) -> deck_pb.GetRngHealthResponse:
        return deck_pb.GetRngHealthResponse(healthy=True)


class Crowd:
    """The running console: its address, and the processor time it has taken."""

    def __init__(self, address: str, pid: int) -> None:
        self.address = address
        self._pid = pid

    def processor_seconds(self) -> float:
        """Of the console's process."""
        return _processor_seconds(self._pid)


def page_processor_seconds() -> float:
    """Of the browser's processes that draw pages, those of this test process alone."""
    return sum(
        _processor_seconds(pid)
        for pid in _descendants(os.getpid())
        if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


def _descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def crowd(folder: Path, tables: int, jwks: Path) -> AsyncIterator[Crowd]:
    """A console of its own process before such a house; `jwks` are the keys of those who sign in."""
    server = grpc.aio.server()
    rpc.add_TableServiceServicer_to_server(CrowdedTables(tables), server)
    wallet_rpc.add_WalletServiceServicer_to_server(Ledger(), server)
    deck_rpc.add_DeckServiceServicer_to_server(Deck(), server)
    house = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    address = f"127.0.0.1:{free_port()}"
    peers = {f"FIVEDRAW_{name}_ADDRESS": house for name in ("TABLE", "WALLET", "DECK", "HISTORY")}
    settings = {
        "FIVEDRAW_LISTEN": address,
        "FIVEDRAW_JWKS": str(jwks),
        "FIVEDRAW_DATABASE_URL": f"sqlite:///{folder / 'console.sqlite'}",
        **peers,
    }
    with (folder / "console.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.console"), env={**os.environ, **settings}, stdout=log, stderr=log
        )
    try:
        await _until_it_listens(address, process)
        yield Crowd(f"http://{address}", process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        await server.stop(0)


async def _until_it_listens(address: str, process: asyncio.subprocess.Process) -> None:
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(START_SECONDS):
        while True:
            assert process.returncode is None, "the console ended"
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.close()
                return
            await asyncio.sleep(0.1)
