"""`fivedraw rake` joins the ledger's report with the tables' rulebooks, and agrees with the ledger to the unit."""

from __future__ import annotations

import asyncio

import pytest
from click.testing import CliRunner
from fivedraw.table.v1 import table_pb2, table_service_pb2, table_service_pb2_grpc
from fivedraw.wallet.v1 import wallet_service_pb2_grpc

from services.cli.commands.rake import rake_command
from services.runtime.clock import SystemClock
from services.wallet import reports
from services.wallet.auditing import Auditor
from services.wallet.grpc_api import WalletApi
from services.wallet.ledger import Ledger
from tests.integration.wallet.house import House, antes, wins
from tests.standing_clock import StandingClock

DAY_SECONDS = 86_400
MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00:00Z
RULEBOOKS = {"t1": "house", "t2": "house", "t3": "openers"}


class TablesApi(table_service_pb2_grpc.TableServiceServicer):
    """The registry's answer, one table a page; t2 is closed."""

    async def ListTables(self, request, context):
        names = [
            name for name in sorted(RULEBOOKS) if name > request.page_token and (request.show_closed or name != "t2")
        ]
        table = table_pb2.Table(name=f"tables/{names[0]}", rulebook=f"rulebooks/{RULEBOOKS[names[0]]}")
        return table_service_pb2.ListTablesResponse(tables=[table], next_page_token=names[0] if names[1:] else "")


@pytest.fixture
async def rake(ledger_database, make_settings, serve, token):
    """`await rake("--by", "day")`: the command, on three tables with three days of rake."""
    _, database = ledger_database
    clock = StandingClock(now_ms=MONDAY_MS)
    ledger = Ledger(database, clock)
    for number, table in enumerate(RULEBOOKS, start=1):
        house = House(ledger, table=table)
        await house.register(f"p{number}")
        await house.buy_in(f"p{number}", 900)
    for day in range(3):
        for number, table in enumerate(RULEBOOKS, start=1):
            house = House(ledger, table=table, first_id=100 * (day + 1))
            await house.forced(day + 1, f"p{number}", antes(**{f"p{number}": 100}))
            await house.award(day + 1, wins(**{f"p{number}": 100 - number}), rake=number)
        clock.advance(DAY_SECONDS)

    def register(server) -> list[str]:
        wallet_service_pb2_grpc.add_WalletServiceServicer_to_server(
            WalletApi(ledger, Auditor(database, SystemClock())), server
        )
        table_service_pb2_grpc.add_TableServiceServicer_to_server(TablesApi(), server)
        return ["fivedraw.wallet.v1.WalletService", "fivedraw.table.v1.TableService"]

    server = await serve(make_settings(), register, name="wallet")

    async def run(*arguments: str) -> list[list[str]]:
        reach = ["--target", f"127.0.0.1:{server.port}", "--token", token("olga", "operator")]
        span = ["--since", "2026-01-05", "--before", "2026-01-08"]
        result = await asyncio.to_thread(CliRunner().invoke, rake_command, [*span, *arguments, *reach])
        assert result.exit_code == 0, result.output
        rows = [line.strip("│ ").split("│") for line in result.output.splitlines() if line.startswith("│")]
        return [[cell.strip() for cell in row] for row in rows]

    yield run
    totals = {total.kind.name: total.amount_minor for total in (await ledger.get_ledger_summary()).totals}
    assert totals["RAKE"] == 18
    await ledger.close()


async def test_the_rake_adds_up_by_rulebook_day_and_table(rake):
    assert await rake() == [["house", "EUR", "9", "6"], ["openers", "EUR", "9", "3"]]
    assert await rake("--by", "day", "--by", "rulebook") == [
        [day, rulebook, "EUR", "3", hands]
        for day in ("2026-01-05", "2026-01-06", "2026-01-07")
        for rulebook, hands in (("house", "2"), ("openers", "1"))
    ]
    assert await rake("--by", "table") == [[f"tables/t{n}", "EUR", str(3 * n), "3"] for n in (1, 2, 3)]


async def test_a_report_that_was_cut_off_is_asked_for_in_pieces(rake, monkeypatch):
    monkeypatch.setattr(reports, "RAKE_ROWS_MAX", 3)
    assert await rake() == [["house", "EUR", "9", "6"], ["openers", "EUR", "9", "3"]]


def test_a_span_that_is_none_is_refused():
    for span in (["--since", "2026-01-05", "--before", "2026-01-05"], ["--since", "2020-01-01"]):
        result = CliRunner().invoke(rake_command, [*span, "--target", "127.0.0.1:1", "--token", "t"])
        assert (result.exit_code, "1 to 366 days" in result.output) == (2, True)
