"""The model's words said to a real ledger, and random operations in those words."""

from __future__ import annotations

import random

from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.chart import PlayerState, TransferCode
from services.wallet.ledger import Ledger
from tests.property.wallet.model import Model

CASH = 2_000
ATTEMPTS_MAX = 20
# Nothing expires of itself in a life; that it does is an operation.
HOLD_MS = 24 * 3_600_000


class Driver:
    """Says operations to one ledger, for one table whose players' names begin with the table's."""

    def __init__(self, ledger: Ledger, table: str) -> None:
        self.ledger = ledger
        self.table = table
        self.players = [f"{table}-{letter}" for letter in "abcd"]

    async def begin(self, model: Model) -> None:
        for player in self.players:
            assert await self.say(f"new {player}", "create", player) == f"OK {player}"
            assert await self.say(f"first {player}", "deposit", player, CASH) == f"OK {CASH}"
            model.cash[player] = CASH
            model.issued += CASH

    async def say(self, batch_id: str, operation: str, *content) -> str:
        """What the ledger answers, in the model's form; sent again under its id while the ledger cannot be written."""
        for _ in range(ATTEMPTS_MAX):
            try:
                return _shown(await getattr(self, f"_{operation}")(batch_id, *content))
            except Fault as fault:
                if fault.reason != "SERVICE_UNAVAILABLE":
                    return fault.reason
        return "SERVICE_UNAVAILABLE"

    async def _create(self, batch_id, player):
        return await self.ledger.create_player(c.CreatePlayer(batch_id, player, player), caller="service/table")

    async def _freeze(self, _, player, is_frozen):
        state = PlayerState.FROZEN if is_frozen else PlayerState.ACTIVE
        await self.ledger.set_player_state(c.SetPlayerState(player, state, "property"), caller="person/op")

    async def _deposit(self, batch_id, player, amount):
        return await self.ledger.deposit(c.Deposit(batch_id, player, "EUR", amount), caller="service/table")

    async def _withdraw(self, batch_id, player, amount):
        return await self.ledger.withdraw(c.Withdraw(batch_id, player, "EUR", amount), caller="service/table")

    async def _buy_in(self, batch_id, epoch, name, player, amount, seat):  # noqa: PLR0917 - the model's words
        command = c.BuyIn(batch_id, self.table, epoch, name, player, "EUR", amount, seat)
        return await self.ledger.buy_in(command)

    async def _reserve(self, batch_id, epoch, name, sitting, player, amount, seat):  # noqa: PLR0917 - the model's words
        command = c.ReserveBuyIn(batch_id, self.table, epoch, name, sitting, player, "EUR", amount, seat, HOLD_MS)
        return await self.ledger.reserve_buy_in(command)

    async def _commit(self, batch_id, name):
        return await self.ledger.commit_reservation(c.CommitReservation(batch_id, self.table, name))

    async def _release(self, batch_id, name):
        return await self.ledger.release_reservation(c.ReleaseReservation(batch_id, self.table, name))

    async def _expire(self, _, name):
        return await self.ledger.expire_reservation(c.ExpireReservation(f"expire {name}", self.table, name))

    async def _top_up(self, batch_id, epoch, name, amount):
        return await self.ledger.top_up(c.TopUp(batch_id, self.table, epoch, name, amount))

    async def _cash_out(self, batch_id, epoch, name):
        return await self.ledger.cash_out(c.CashOut(batch_id, self.table, epoch, name))

    async def _forced(self, batch_id, epoch, number, dealt_in, antes, carry):  # noqa: PLR0917 - the model's words
        posted = _lines(antes, TransferCode.ANTE)
        command = c.PostForced(batch_id, self.table, epoch, number, dealt_in, posted, "EUR", carry)
        return await self.ledger.post_forced(command)

    async def _collect(self, batch_id, epoch, number, round_no, bets, back):  # noqa: PLR0917 - the model's words
        lines = _lines(bets, TransferCode.BET), _lines(back, TransferCode.RETURN)
        command = c.CollectBets(batch_id, self.table, epoch, number, round_no, *lines)
        return await self.ledger.collect_bets(command)

    async def _award(self, batch_id, epoch, number, wins, rake, carry):  # noqa: PLR0917 - the model's words
        command = c.AwardPot(batch_id, self.table, epoch, number, _lines(wins, TransferCode.WIN), rake, carry)
        return await self.ledger.award_pot(command)

    async def _void(self, batch_id, epoch, number):
        return await self.ledger.void_hand(c.VoidHand(batch_id, self.table, epoch, number, "property"))

    async def _fence(self, _, epoch):
        await self.ledger.fence_table(c.FenceTable(self.table, epoch, "property"))

    async def _refund(self, batch_id, epoch):
        return await self.ledger.refund_carry(c.RefundCarry(batch_id, self.table, epoch))

    async def differences(self, model: Model) -> list[str]:
        """Where the ledger's balances are not the model's."""
        found = []
        for player in self.players:
            balances = await self.ledger.get_balances(player)
            cash = sum(balance.amount_minor for balance in balances.cash)
            held = sum(balance.amount_minor for balance in balances.reserved)
            if (cash, held) != (model.cash[player], model.reserved(player)):
                found.append(f"{player} has {cash} and {held}, not {model.cash[player]} and {model.reserved(player)}")
        known = await self.ledger.get_table_ledger(self.table)
        stacks = {stack.sitting: stack.stack_minor for stack in known.stacks}
        expected = {name: sitting.stack for name, sitting in model.sittings.items() if sitting.open}
        if (stacks, known.carry_minor) != (expected, model.carry):
            found.append(f"stacks {stacks} carry {known.carry_minor}, not {expected} and {model.carry}")
        if model.total():
            found.append(f"the model itself is off by {model.total()}")
        return found


def _lines(amounts, code: TransferCode) -> tuple[c.SittingAmount, ...]:
    return tuple(c.SittingAmount(name, amount, code) for name, amount in amounts)


def _shown(answer) -> str:
    match answer:
        case None:
            return "OK"
        case c.Reservation():
            return f"OK {answer.reservation}"
        case c.Balance() | c.CashedOut() | c.CarryRefunded() | c.Released():
            return f"OK {answer.amount_minor}"
        case c.Player():
            return f"OK {answer.player}"
        case c.Stack():
            return f"OK {answer.stack_minor}"
        case c.Pot():
            return f"OK {answer.pot_minor}"
        case c.Awarded():
            return "OK " + _stacks(answer.stacks)
        case c.Voided():
            return f"OK {_stacks(answer.stacks)} {answer.carry_minor}"
    raise AssertionError(f"an answer of an unknown kind: {answer}")


def _stacks(stacks) -> str:
    return ",".join(f"{stack.sitting}={stack.stack_minor}" for stack in stacks)


def random_operation(chance: random.Random, model: Model, driver: Driver) -> tuple:
    """An operation that mostly goes on from where the model is, and sometimes does not."""
    odd = chance.random() < 0.15
    epoch = max(1, model.epoch) + (chance.choice((-1, 1)) if odd and chance.random() < 0.3 else 0)
    epoch = max(1, epoch)
    player = chance.choice(driver.players)
    opened = [name for name, sitting in model.sittings.items() if sitting.open] or ["none"]
    number = model.open_hand or model.last + 1
    if odd:
        number = max(1, number + chance.choice((-1, 1, 2)))
    hand = model.hands.get(model.open_hand)
    choice = chance.random()
    if hand and choice < 0.75:
        names = hand.dealt_in if not odd else opened
        if choice < 0.35:
            bets = tuple((chance.choice(names), chance.choice((1, 3, 20, 500))) for _ in range(chance.randint(0, 3)))
            back = tuple((chance.choice(names), chance.choice((1, 4, 30))) for _ in range(chance.choice((0, 0, 1, 2))))
            return ("collect", epoch, number, chance.choice((1, 2)), bets, back)
        if choice < 0.62:
            return ("award", epoch, number, *_shares(chance, hand.pot, names, odd))
        return ("void", epoch, number)
    if not hand and choice < 0.4 and opened != ["none"]:
        dealt_in = tuple(chance.sample(opened, chance.randint(1, len(opened)))[:9])
        antes = tuple((name, chance.choice((1, 5, 10))) for name in (opened if odd else dealt_in))
        return ("forced", epoch, number, dealt_in, antes, model.carry + (1 if odd else 0))
    others = (
        ("deposit", player, chance.randint(1, 100)),
        ("withdraw", player, chance.randint(1, 400)),
        # A player keeps one seat: whichever of two sittings gets an odd chip, it goes to the same cash.
        ("buy_in", epoch, f"{player}.{chance.randint(1, 3)}", player, chance.randint(1, 600), _seat(driver, player)),
        ("top_up", epoch, chance.choice(opened), chance.randint(1, 300)),
        ("cash_out", epoch, chance.choice(opened)),
        ("freeze", player, chance.random() < 0.4),
        ("fence", epoch + chance.choice((0, 0, 1))),
        ("refund", epoch),
        ("void", epoch, number),
        *_of_reservations(chance, model, driver, epoch),
    )
    return chance.choices(others, (2, 2, 6, 3, 2, 2, 1, 2, 1, 4, 2, 1, 1))[0]


def _of_reservations(chance: random.Random, model: Model, driver: Driver, epoch: int) -> tuple[tuple, ...]:
    player = chance.choice(driver.players)
    fresh = f"{driver.table}.r{len(model.reservations)}"
    known = chance.choice([*model.reservations, fresh])
    made = [name for name, held in model.reservations.items() if held.player] or [known]
    waiting = [name for name, held in model.reservations.items() if held.state == "open"] or [known]
    sitting = f"{player}.{chance.randint(1, 3)}"
    return (
        (
            "reserve",
            epoch,
            chance.choice((fresh, fresh, known)),
            sitting,
            player,
            chance.randint(1, 600),
            _seat(driver, player),
        ),
        ("commit", chance.choice((chance.choice(waiting), known))),
        ("release", chance.choice((chance.choice(waiting), known))),
        # A sweeper names none that was never made.
        ("expire", chance.choice(made)) if made != [known] or known in model.reservations else ("commit", known),
    )


def _seat(driver: Driver, player: str) -> int:
    return 9 - driver.players.index(player)


def _shares(chance: random.Random, pot: int, names, odd: bool) -> tuple:
    rake = chance.choice((0, 0, 1)) if pot > 1 else 0
    carry = (pot - rake) * chance.choice((0, 0, 1, 1, 2)) // 2
    left = pot - rake - carry + (1 if odd else 0)
    first = left * chance.randint(0, 4) // 4
    wins = tuple((chance.choice(names), amount) for amount in (first, left - first) if amount)
    return wins, rake, carry
