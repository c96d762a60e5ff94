"""`make soak-wallet`: random operations with faults on the ledger, each life checked against a model, then an audit.

    python -m tests.load.soak_wallet --operations 1000000 --database sqlite

Runs on a fresh SQLite file, or on a fresh database of a real PostgreSQL. Ends with status 1 at the first difference.
The seed is printed; the same seed gives the same lives (not the same interleaving).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator

from services.runtime import telemetry
from services.runtime.clock import SystemClock
from services.runtime.database import DatabaseBusyError
from services.wallet.auditing import Auditor
from tests import servers
from tests.property.wallet.lives import Writers, live

OPERATIONS_PER_LIFE = 400
LIVES_AT_ONCE = 256
GROUP_MAX = 128
REPORT_SECONDS = 10
SEALING_SECONDS = 1.0


async def soak(url: str, operations: int, seed: int, seconds_max: float = math.inf) -> list[str]:
    """Lives through so many operations, each beside repeats of earlier ones and calls that are hung up on.

    Returns what went wrong. Past `seconds_max` all lives end where they are.
    """
    writers = Writers(url, random.Random(seed), lost_share=0.005, second_share=0.05, group_max=GROUP_MAX)
    await writers.open()
    auditor = Auditor(writers.databases[0], SystemClock())
    lives = iter(range(-(-operations // OPERATIONS_PER_LIFE)))
    wrong, began = [], time.monotonic()

    async def player() -> None:
        for number in lives:
            if writers.is_over:
                return
            try:
                await live(writers, f"t{number}", random.Random(f"{seed} {number}"), OPERATIONS_PER_LIFE)
            except AssertionError as difference:
                wrong.append(str(difference))
                writers.is_over = True

    async def watch() -> None:
        reported = began
        while True:
            await asyncio.sleep(SEALING_SECONDS)
            # A commit that takes long on a busy machine puts the seal off.
            with contextlib.suppress(DatabaseBusyError):
                await auditor.seal()
            now = time.monotonic()
            writers.is_over |= now - began > seconds_max
            if now - reported >= REPORT_SECONDS:
                reported = now
                say(
                    f"{writers.operations} of {operations} operations, {writers.operations / (now - began):.0f}/s, "
                    f"in {writers.calls} calls, {writers.lost} commits lost"
                )

    watching = asyncio.create_task(watch())
    try:
        await asyncio.gather(*(player() for _ in range(LIVES_AT_ONCE)))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        head = await auditor.seal()
        took = time.monotonic() - began
        say(f"{writers.operations} operations in {writers.calls} calls and {took:.0f} s, {writers.lost} commits lost")
        say(f"auditing to {head}")
        report = await auditor.audit(head)
        say(f"{report.entries_checked} entries: {'clean' if report.clean else 'NOT clean'}")
        summary = await writers.ledgers[0].get_ledger_summary()
        wrong.extend(report.faults)
        wrong.extend(
            f"{each.currency} is off by {each.amount_minor}" for each in summary.imbalance if each.amount_minor
        )
        return wrong
    finally:
        watching.cancel()
        await writers.close()


@contextlib.contextmanager
def fresh_database(kind: str) -> Iterator[str]:
    """The URL of an empty database."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="fivedraw-soak-") as folder:
            yield f"sqlite:///{folder}/ledger.sqlite"
        return
    with servers.postgres_server() as server, servers.postgres_database(server) as url:
        yield url


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="soak_wallet", description="Random operations with faults on a real ledger.")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--seconds", type=float, default=math.inf, help="end all lives after so long")
    given = parser.parse_args()
    telemetry.configure_logging("soak", level="critical", form="console")
    say(f"{given.operations} operations on {given.database}, seed {given.seed}")
    with fresh_database(given.database) as url:
        wrong = asyncio.run(soak(url, given.operations, given.seed, given.seconds))
    for line in wrong:
        say(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
