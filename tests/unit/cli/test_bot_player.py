"""A bot between hands and at its turn, when the table changes while its calls are under way."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2
from fivedraw_client import Client, TableStream, UnavailableError

from services.cli.bots.bank import Bank
from services.cli.bots.pace import PACES
from services.cli.bots.player import BotPlayer
from services.cli.bots.record import TableRecord


class ChangingTable:
    """A client of one table whose seat wins a pot whenever somebody asks for its player's balances."""

    player = "players/bot"

    def __init__(self, stack_minor: int, won_minor: int) -> None:
        self.won_minor = won_minor
        self.top_ups: list[int] = []
        self.refuses = 0
        self.acted: list[int] = []
        self.stream = TableStream(cast(Any, None), cast(Any, None), "tables/t", self.player)
        options = table_pb2.GameOptions(buy_in_min_minor=200, buy_in_max_minor=1000)
        table = table_pb2.Table(name="tables/t", currency="EUR", options=options, state=table_pb2.TABLE_STATE_OPEN)
        seat = table_pb2.SeatView(seat=1, player=self.player, stack_minor=stack_minor)
        self.see(snapshot=table_pb2.TableView(table=table, sequence=1, seats=[seat], your_seat=1))

    def see(self, **update: Any) -> None:
        message = table_service_pb2.WatchTableResponse(**update)
        self.stream.keeper.accept(message)
        self.stream.mirror.apply(message)

    def watch(self, _: str) -> TableStream:
        return self.stream

    async def balances(self, _: str) -> wallet_service_pb2.GetBalancesResponse:
        seat = self.stream.mirror.own_seat()
        assert seat is not None
        seat.stack_minor += self.won_minor
        return wallet_service_pb2.GetBalancesResponse()

    async def top_up(self, _: str, amount_minor: int) -> None:
        self.top_ups.append(amount_minor)

    async def leave(self, _: str) -> None:
        """Always goes."""

    async def update_seat(self, _: str, **__: bool) -> None:
        """Always goes."""

    async def act(self, _: str, __: table_service_pb2.Action, *, hand: int, turn: int) -> None:
        if self.refuses:
            self.refuses -= 1
            raise UnavailableError("the tables' store is out of reach")
        self.acted.append(turn)


class Purse:
    """A bank that is always open."""

    def __init__(self) -> None:
        self.funded: list[int] = []

    async def fund(self, _: str, amount_minor: int) -> None:
        self.funded.append(amount_minor)


def bot_at(table: ChangingTable, seed: int) -> BotPlayer:
    return BotPlayer(
        cast(Client, table),
        "tables/t",
        pace=PACES["flatout"],
        bank=cast(Bank, Purse()),
        record=TableRecord("tables/t", "house"),
        rng=random.Random(seed),
        over_stream=False,
    )


@pytest.mark.parametrize("stack_minor", [0, 1, 199])
async def test_a_pot_won_while_the_bank_is_asked_changes_no_top_up(stack_minor: int):
    topped_up = []
    for seed in range(60):
        table = ChangingTable(stack_minor, won_minor=850)
        await bot_at(table, seed)._step()
        topped_up += table.top_ups
    assert topped_up
    assert all(200 <= amount <= 1000 - stack_minor for amount in topped_up)


async def test_a_turn_that_the_house_could_not_take_is_taken_later():
    table = ChangingTable(500, won_minor=0)
    table.refuses = 1
    turn = table_pb2.Turn(seat=1, turn=7)
    legal = table_pb2.LegalActions(check=True)
    started = event_pb2.TurnStarted(turn=turn, your_actions=legal)
    table.see(events=[event_pb2.TableEvent(sequence=2, hand=1, turn_started=started)])
    bot = bot_at(table, 1)
    with pytest.raises(UnavailableError):
        await bot._step()
    await bot._step()
    await bot._step()
    assert table.acted == [7]
