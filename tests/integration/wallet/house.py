"""Short words for the ledger's commands, as a table service would send them."""

from __future__ import annotations

import itertools

import pytest

from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.chart import PlayerState, TransferCode
from services.wallet.ledger import Ledger

CASH = 1000
STACK = 400


def lines(code: TransferCode, **amounts: int) -> tuple[c.SittingAmount, ...]:
    """`lines(BET, ann=5)`: amounts by sitting."""
    return tuple(c.SittingAmount(sitting, amount, code) for sitting, amount in amounts.items())


def antes(**amounts: int) -> tuple[c.SittingAmount, ...]:
    return lines(TransferCode.ANTE, **amounts)


def bets(**amounts: int) -> tuple[c.SittingAmount, ...]:
    return lines(TransferCode.BET, **amounts)


def wins(**amounts: int) -> tuple[c.SittingAmount, ...]:
    return lines(TransferCode.WIN, **amounts)


def returned(**amounts: int) -> tuple[c.SittingAmount, ...]:
    return lines(TransferCode.RETURN, **amounts)


class House:
    """One ledger and the table `t1`; a sitting is called by its player's name."""

    def __init__(
        self, ledger: Ledger, *, table: str = "t1", epoch: int = 1, currency: str = "EUR", first_id: int = 1
    ) -> None:
        self.ledger = ledger
        self.table = table
        self.epoch = epoch
        self.currency = currency
        self._ids = itertools.count(first_id)

    def id(self) -> str:
        return f"{self.table}-{next(self._ids)}"

    async def open(self, *players: str) -> None:
        for seat, player in enumerate(players, start=1):
            await self.register(player)
            await self.buy_in(player, STACK, seat=seat)

    async def register(self, player: str, cash: int = CASH) -> None:
        await self.ledger.create_player(c.CreatePlayer(self.id(), player, player.title()), caller="person/op")
        if cash:
            await self.deposit(player, cash)

    async def deposit(self, player: str, amount: int, **given) -> c.Balance:
        command = c.Deposit(given.pop("id", None) or self.id(), player, self.currency, amount)
        return await self.ledger.deposit(command, caller="person/op")

    async def withdraw(self, player: str, amount: int) -> c.Balance:
        return await self.ledger.withdraw(c.Withdraw(self.id(), player, self.currency, amount), caller="person/op")

    async def freeze(self, player: str, state: PlayerState = PlayerState.FROZEN) -> None:
        await self.ledger.set_player_state(c.SetPlayerState(player, state, "why"), caller="person/op")

    async def buy_in(self, player: str, amount: int, *, seat: int = 1, sitting: str = "", id: str = "") -> c.Stack:
        command = c.BuyIn(
            id or self.id(), self.table, self.epoch, sitting or player, player, self.currency, amount, seat
        )
        return await self.ledger.buy_in(command)

    async def top_up(self, sitting: str, amount: int) -> c.Stack:
        return await self.ledger.top_up(c.TopUp(self.id(), self.table, self.epoch, sitting, amount))

    async def cash_out(self, sitting: str, *, id: str = "") -> c.CashedOut:
        return await self.ledger.cash_out(c.CashOut(id or self.id(), self.table, self.epoch, sitting))

    async def forced(self, hand: int, dealt_in: str, posted=(), *, carry: int = 0, id: str = "") -> c.Pot:
        command = c.PostForced(
            id or self.id(), self.table, self.epoch, hand, tuple(dealt_in.split()), tuple(posted), self.currency, carry
        )
        return await self.ledger.post_forced(command)

    async def collect(self, hand: int, number: int, collected=(), back=(), *, id: str = "") -> c.Pot:
        command = c.CollectBets(id or self.id(), self.table, self.epoch, hand, number, tuple(collected), tuple(back))
        return await self.ledger.collect_bets(command)

    async def award(self, hand: int, won=(), *, rake: int = 0, carry: int = 0, id: str = "") -> c.Awarded:
        command = c.AwardPot(id or self.id(), self.table, self.epoch, hand, tuple(won), rake, carry)
        return await self.ledger.award_pot(command)

    async def void(self, hand: int, *, id: str = "") -> c.Voided:
        return await self.ledger.void_hand(c.VoidHand(id or self.id(), self.table, self.epoch, hand, "an operator"))

    async def fence(self, epoch: int) -> c.Fenced:
        self.epoch = epoch
        return await self.ledger.fence_table(c.FenceTable(self.table, epoch, "state was lost"))

    async def refund_carry(self) -> c.CarryRefunded:
        return await self.ledger.refund_carry(c.RefundCarry(self.id(), self.table, self.epoch))

    async def limit(self, player: str, *, deposit: int = 0, buy_in: int = 0) -> c.Player:
        command = c.SetPlayerLimits(player, self.currency, deposit, buy_in, "why")
        return await self.ledger.set_player_limits(command, caller="person/op")

    async def reserve(
        self, player: str, amount: int, *, name: str = "r", sitting: str = "late", hold_ms: int = 60_000, id: str = ""
    ) -> c.Reservation:
        command = c.ReserveBuyIn(
            id or self.id(), self.table, self.epoch, name, sitting, player, self.currency, amount, 4, hold_ms
        )
        return await self.ledger.reserve_buy_in(command)

    async def commit(self, name: str = "r", *, id: str = "", table: str = "") -> c.Stack:
        return await self.ledger.commit_reservation(c.CommitReservation(id or self.id(), table or self.table, name))

    async def release(self, name: str = "r", *, id: str = "", table: str = "") -> c.Released:
        return await self.ledger.release_reservation(c.ReleaseReservation(id or self.id(), table or self.table, name))

    async def stacks(self) -> dict[str, int]:
        known = await self.ledger.get_table_ledger(self.table)
        return {stack.sitting: stack.stack_minor for stack in known.stacks}

    async def cash(self, player: str) -> int:
        balances = await self.ledger.get_balances(player)
        return sum(balance.amount_minor for balance in balances.cash)

    async def play(self, hand: int) -> None:
        """A whole hand of six transfers: two antes, two bets, one win, rake."""
        await self.forced(hand, "ann bob", antes(ann=1, bob=1))
        await self.collect(hand, 1, bets(ann=4, bob=4))
        await self.award(hand, wins(ann=9), rake=1)


async def refused(awaitable, reason: str, **facts: str) -> Fault:
    """The refusal with which a call ends."""
    with pytest.raises(Fault) as caught:
        await awaitable
    assert caught.value.reason == reason, caught.value
    assert {name: caught.value.metadata.get(name) for name in facts} == facts
    return caught.value
