"""A process that plays hands on a ledger and dies by SIGKILL at a named point: `victim URL FAILPOINT HITS`.

Prints the id of each batch when its answer has come, so that the parent knows what was promised.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet import commands as c
from services.wallet.chart import TransferCode
from services.wallet.ledger import Ledger

TABLES = 3
HANDS = 6
BUY_IN = 500


def sitting(table: int, seat: int) -> str:
    return f"s{table}-{seat}"


async def open_table(ledger: Ledger, table: int, say) -> None:
    for seat in (1, 2):
        player = f"p{table}-{seat}"
        await say(f"n{player}", ledger.create_player(c.CreatePlayer(f"n{player}", player, player), caller="person/op"))
        deposit = c.Deposit(f"d{player}", player, "EUR", 1000)
        await say(f"d{player}", ledger.deposit(deposit, caller="person/op"))
        buy_in = c.BuyIn(f"b{player}", f"t{table}", 1, sitting(table, seat), player, "EUR", BUY_IN, seat)
        await say(f"b{player}", ledger.buy_in(buy_in))


async def play(ledger: Ledger, table: int, hand: int, say) -> None:
    """Each hand: 1 ante each, 10 each, seat 1 wins 20, 2 rake; every third hand is void instead."""

    def lines(code: TransferCode, amount: int) -> tuple[c.SittingAmount, ...]:
        return tuple(c.SittingAmount(sitting(table, seat), amount, code) for seat in (1, 2))

    name, at = f"t{table}h{hand}", (f"t{table}", 1, hand)
    both = (sitting(table, 1), sitting(table, 2))
    forced = c.PostForced(f"{name}f", *at, both, lines(TransferCode.ANTE, 1), "EUR")
    await say(f"{name}f", ledger.post_forced(forced))
    collect = c.CollectBets(f"{name}c", *at, 1, lines(TransferCode.BET, 10))
    await say(f"{name}c", ledger.collect_bets(collect))
    if hand % 3 == 0:
        await say(f"{name}v", ledger.void_hand(c.VoidHand(f"{name}v", *at, "every third")))
        return
    won = (c.SittingAmount(sitting(table, 1), 20, TransferCode.WIN),)
    await say(f"{name}a", ledger.award_pot(c.AwardPot(f"{name}a", *at, won, rake_minor=2)))


async def live(ledger: Ledger, say) -> None:
    """All tables to their last hand; every id is the same in each run, so a second run finishes the first."""

    async def one_table(table: int) -> None:
        await open_table(ledger, table, say)
        for hand in range(1, HANDS + 1):
            await play(ledger, table, hand, say)

    await asyncio.gather(*(one_table(table) for table in range(TABLES)))


async def main(url: str, failpoint: str, hits: int) -> None:
    left = hits

    def die_at(name: str) -> None:
        nonlocal left
        left -= name == failpoint
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    database = Database(url, isolation="READ COMMITTED")
    await database.migrate("wallet")
    ledger = Ledger(database, SystemClock(), failpoint=die_at)

    async def say(batch_id: str, answer) -> None:
        await answer
        sys.stdout.write(batch_id + "\n")
        sys.stdout.flush()

    await live(ledger, say)
    raise SystemExit(f"lived past {failpoint}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
