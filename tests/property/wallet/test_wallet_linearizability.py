"""What concurrent clients saw of one account can be put into one line, on both databases; a planted lie cannot.

Clients of two processes deposit to, withdraw from and read one player's cash, and race to end hands; some hang up, some
commits are lost. Each call is recorded with its start, its end and its answer.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field, replace

import pytest

from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.chart import HandOutcome
from services.wallet.ledger import Ledger
from tests.property.wallet.linearizable import UNKNOWN, Call, SearchTooLongError, line_of
from tests.property.wallet.lives import Writers

CLIENTS = 6
CALLS_PER_CLIENT = 25
HANDS = 8
# In the first hands all clients have the same mind, so that both outcomes are met; in the others they race.
SETTLED_HANDS = 2
FIRST_CASH = 100
HUNG_UP_SHARE = 0.1
# Each call whose outcome nobody ever learnt doubles the search.
LEFT_OPEN_SHARE = 0.3
LEFT_OPEN_MAX = 4
ATTEMPTS_MAX = 20


def cash(balance: int, asked: tuple) -> tuple[int, object]:
    """The sequential model of an account: its balance."""
    match asked:
        case ("deposit", amount):
            return balance + amount, balance + amount
        case ("withdraw", amount) if amount > balance:
            return balance, "INSUFFICIENT_FUNDS"
        case ("withdraw", amount):
            return balance - amount, balance - amount
        case _:
            return balance, balance


def hand(outcome: str, asked: tuple) -> tuple[str, object]:
    """The sequential model of a hand: whichever of award and void comes first is its outcome for good."""
    (what,) = asked
    if what == "read":
        return outcome, outcome
    if outcome == "OPEN":
        return ("AWARDED", "OK") if what == "award" else ("VOID", "OK")
    if outcome == "VOID" and what == "void":
        return outcome, "OK"
    return outcome, "HAND_CLOSED"


@dataclass
class Recorder:
    """Makes calls and writes down what each asked, was answered, and when."""

    chance: random.Random
    calls: list[Call] = field(default_factory=list)
    left_open: list[Call] = field(default_factory=list)
    hung_up: int = 0

    async def call(self, asked: tuple, say) -> None:
        """One call; where its answer is lost it is mostly sent again under its id, and then is one long call.

        A read whose answer is lost is not written down, since nothing of it can be seen.
        """
        start = time.monotonic()
        answer = await self._say(say, may_hang_up=True)
        left_open = answer == UNKNOWN and len(self.left_open) < LEFT_OPEN_MAX and self.chance.random() < LEFT_OPEN_SHARE
        for _ in range(ATTEMPTS_MAX):
            if answer != UNKNOWN or left_open or asked == ("read",):
                break
            answer = await self._say(say, may_hang_up=False)
        call = Call(asked, answer, start, time.monotonic())
        if answer == UNKNOWN and asked != ("read",):
            self.left_open.append(call)
        if answer != UNKNOWN or asked != ("read",):
            self.calls.append(call)

    async def _say(self, say, *, may_hang_up: bool) -> object:
        task = asyncio.ensure_future(say())
        if may_hang_up and self.chance.random() < HUNG_UP_SHARE:
            for _ in range(self.chance.choice((1, 3, 10))):
                await asyncio.sleep(0)
            if not task.done():
                task.cancel()
        (answer,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(answer, Fault):
            # A commit that failed may be in or not, for all that its caller knows.
            return UNKNOWN if answer.reason == "SERVICE_UNAVAILABLE" else answer.reason
        if isinstance(answer, asyncio.CancelledError):
            self.hung_up += 1
            return UNKNOWN
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def client(recorder: Recorder, ledgers: list[Ledger], name: str) -> None:
    chance = random.Random(f"{recorder.chance.random()} {name}")
    for number in range(CALLS_PER_CLIENT):
        ledger, ident = chance.choice(ledgers), f"{name} {number}"
        # More is asked for than comes in, so that some of it is refused.
        amount, wanted = chance.randint(1, 40), chance.randint(20, 90)

        async def deposit(ledger=ledger, ident=ident, amount=amount) -> int:
            answer = await ledger.deposit(c.Deposit(ident, "ann", "EUR", amount), caller="person/op")
            return answer.amount_minor

        async def withdraw(ledger=ledger, ident=ident, wanted=wanted) -> int:
            answer = await ledger.withdraw(c.Withdraw(ident, "ann", "EUR", wanted), caller="person/op")
            return answer.amount_minor

        async def read(ledger=ledger) -> int:
            return sum(each.amount_minor for each in (await ledger.get_balances("ann")).cash)

        asked, say = chance.choice(
            ((("deposit", amount), deposit), (("withdraw", wanted), withdraw), (("read",), read))
        )
        await recorder.call(asked, say)


@pytest.fixture
async def writers(database_url):
    writers = Writers(database_url, random.Random(7), lost_share=0.15)
    await writers.open()
    yield writers
    await writers.close()


async def seat(ledger: Ledger) -> None:
    await ledger.create_player(c.CreatePlayer("new", "ann", "Ann"), caller="person/op")
    await ledger.deposit(c.Deposit("first", "ann", "EUR", FIRST_CASH), caller="person/op")


async def test_what_many_clients_saw_of_one_account_is_one_line(writers):
    writers.lost_share, lost_share = 0.0, writers.lost_share
    await seat(writers.ledgers[0])
    writers.lost_share = lost_share
    recorder = Recorder(random.Random(11))
    await asyncio.gather(*(client(recorder, writers.ledgers, f"c{number}") for number in range(CLIENTS)))
    history = recorder.calls
    line = line_of(history, cash, FIRST_CASH)
    assert line is not None, "no line"
    # A run that met no trouble proves little.
    assert "INSUFFICIENT_FUNDS" in {call.answer for call in history}
    assert recorder.hung_up
    assert writers.lost
    overlaps = sum(one.start < other.end and other.start < one.end for one in history for other in history)
    assert overlaps > 2 * len(history), "the calls hardly overlapped"
    # The same history with one lie in it is found out: a read that saw a chip too many.
    at = max(number for number, call in enumerate(history) if call.asked == ("read",) and call.answer != UNKNOWN)
    lie = [*history[:at], replace(history[at], answer=history[at].answer + 10_000), *history[at + 1 :]]
    assert line_of(lie, cash, FIRST_CASH) is None


async def test_award_and_void_of_one_hand_have_one_winner_that_everybody_sees(writers):
    writers.lost_share = 0.0
    ledger = writers.ledgers[0]
    await seat(ledger)
    await ledger.buy_in(c.BuyIn("b", "t1", 1, "ann", "ann", "EUR", FIRST_CASH, 1))
    writers.lost_share = 0.15
    won = set()
    for number in range(1, HANDS + 1):
        await _until_done(lambda n=number: ledger.post_forced(c.PostForced(f"f{n}", "t1", 1, n, ("ann",), (), "EUR")))
        recorder = Recorder(random.Random(number))
        await asyncio.gather(*(_end(recorder, each, number, who) for who, each in enumerate(writers.ledgers * 2)))
        assert line_of(recorder.calls, hand, "OPEN") is not None, recorder.calls
        await _until_done(lambda n=number: ledger.void_hand(c.VoidHand(f"last{n}", "t1", 1, n, "over")))
        won.add((await ledger.get_hand("t1", number)).outcome)
    assert won == {HandOutcome.AWARDED, HandOutcome.VOID}


async def _until_done(call) -> None:
    """Again under its own id while the commit is lost; a hand that is over already is done."""
    for _ in range(20):
        try:
            await call()
        except Fault as fault:
            if fault.reason == "SERVICE_UNAVAILABLE":
                continue
            if fault.reason != "HAND_CLOSED":
                raise
        return
    raise AssertionError("every commit was lost")


async def _end(recorder: Recorder, ledger: Ledger, number: int, who: int) -> None:
    chance = random.Random(f"{number} {who}")

    async def award() -> str:
        await ledger.award_pot(c.AwardPot(f"a{number} {who}", "t1", 1, number, ()))
        return "OK"

    async def void() -> str:
        await ledger.void_hand(c.VoidHand(f"v{number} {who}", "t1", 1, number, "a race"))
        return "OK"

    async def read() -> str:
        return (await ledger.get_hand("t1", number)).outcome.name

    ways = [("read", read), ("award", award), ("void", void)]
    if number > SETTLED_HANDS:
        chance.shuffle(ways)
    elif number % 2:
        ways.reverse()
    for what, say in (*ways, ("read", read)):
        await recorder.call((what,), say)


def calls(*rows: tuple) -> list[Call]:
    return [Call(asked, answer, start, end) for asked, answer, start, end in rows]


LINES = {
    "one after the other": calls((("deposit", 5), 5, 0, 1), (("read",), 5, 2, 3)),
    "a read beside a deposit saw it or not": calls(
        (("deposit", 5), 5, 0, 9), (("read",), 5, 1, 2), (("read",), 5, 3, 4)
    ),
    "answers crossed": calls((("deposit", 5), 12, 0, 9), (("deposit", 7), 7, 1, 8)),
    "a lost answer took effect late": calls(
        (("deposit", 5), UNKNOWN, 0, 1), (("read",), 0, 2, 3), (("read",), 5, 4, 5)
    ),
    "a lost answer never took effect": calls((("deposit", 5), UNKNOWN, 0, 1), (("read",), 0, 2, 3)),
}
LIES = {
    "a read missed what was answered before it": calls((("deposit", 5), 5, 0, 1), (("read",), 0, 2, 3)),
    "a read went back": calls((("deposit", 5), 5, 0, 9), (("read",), 5, 1, 2), (("read",), 0, 3, 4)),
    "one balance was spent twice": calls(
        (("deposit", 5), 5, 0, 1), (("withdraw", 5), 0, 2, 9), (("withdraw", 5), 0, 3, 8)
    ),
    "a deposit counted twice": calls((("deposit", 5), 5, 0, 1), (("read",), 10, 2, 3)),
    "a refusal without a reason": calls((("deposit", 5), 5, 0, 1), (("withdraw", 5), "INSUFFICIENT_FUNDS", 2, 3)),
    "a lost answer took effect and was taken back": calls(
        (("deposit", 5), UNKNOWN, 0, 1), (("read",), 5, 2, 3), (("read",), 0, 4, 5)
    ),
    "a lost answer took effect before it was asked": calls((("read",), 5, 0, 1), (("deposit", 5), UNKNOWN, 2, 3)),
}


@pytest.mark.parametrize("name", LINES)
def test_a_history_that_can_be_put_into_a_line_is_taken(name):
    line = line_of(LINES[name], cash, 0)
    assert line is not None
    balance = 0
    for call in line:
        balance, answer = cash(balance, call.asked)
        assert call.answer in (UNKNOWN, answer)


@pytest.mark.parametrize("name", LIES)
def test_a_planted_violation_is_found(name):
    assert line_of(LIES[name], cash, 0) is None


def test_a_search_without_end_says_so():
    """Many concurrent deposits of different sizes, and a read that no set of them explains."""
    beside = [Call(("deposit", 2**number), UNKNOWN, 0, 9) for number in range(40)]
    with pytest.raises(SearchTooLongError):
        line_of([*beside, Call(("read",), -1, 0, 9)], cash, 0, steps_max=2_000)
