"""The ledger once more, in memory and without any of its code: what each operation must answer and leave behind.

It knows no SQL, no groups, no hashes; where the ledger works from its own entries, it works from what it remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Sitting:
    player: str
    seat: int
    stack: int
    open: bool = True
    locked: int = 0
    took: int = 0


@dataclass
class Hand:
    outcome: str
    paid: dict[str, int] = field(default_factory=dict)
    carried: int = 0
    round: int = 0
    dealt_in: tuple[str, ...] = ()
    epoch: int = 0

    @property
    def pot(self) -> int:
        return sum(self.paid.values()) + self.carried


@dataclass
class Reservation:
    player: str
    epoch: int
    sitting: str
    seat: int
    amount: int
    state: str = "open"


@dataclass
class Model:
    """One table, its players, the house."""

    cash: dict[str, int] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    sittings: dict[str, Sitting] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    hands: dict[int, Hand] = field(default_factory=dict)
    answers: dict[str, tuple[object, str]] = field(default_factory=dict)
    epoch: int = 0
    fenced: int = 0
    last: int = 0
    open_hand: int = 0
    carry: int = 0
    rake: int = 0
    issued: int = 0
    # What each sitting put into the hands that the carry passed through since it was last empty.
    carry_paid: dict[str, int] = field(default_factory=dict)

    def apply(self, batch_id: str, operation: str, *content: object) -> str:
        """`OK …` or the reason of the refusal, as the ledger must answer."""
        asked = (operation, content)
        if operation == "freeze":
            return self.freeze(*content)
        if operation == "fence":
            return self.fence(*content)
        if operation == "expire":
            # The ledger names this batch itself, by the reservation.
            batch_id = f"expire {content[0]}"
        if batch_id in self.answers:
            before, answer = self.answers[batch_id]
            return answer if before == asked else "BATCH_CONFLICT"
        answer = getattr(self, operation)(*content)
        self.answers[batch_id] = (asked, answer)
        return answer

    def freeze(self, player: str, is_frozen: bool) -> str:
        (self.frozen.add if is_frozen else self.frozen.discard)(player)
        return "OK"

    def deposit(self, player: str, amount: int) -> str:
        self.cash[player] += amount
        self.issued += amount
        return f"OK {self.cash[player]}"

    def withdraw(self, player: str, amount: int) -> str:
        if player in self.frozen:
            return "PLAYER_FROZEN"
        if self.cash[player] < amount:
            return "INSUFFICIENT_FUNDS"
        self.cash[player] -= amount
        self.issued -= amount
        return f"OK {self.cash[player]}"

    def reserve(self, epoch: int, name: str, sitting: str, player: str, amount: int, seat: int) -> str:  # noqa: PLR0917
        if self._stale(epoch):
            return "STALE_EPOCH"
        known = self.reservations.get(name)
        if known:
            return "RESERVATION_EXISTS" if known.state == "open" else "RESERVATION_CLOSED"
        seated = self.sittings.get(sitting)
        if seated:
            return "SITTING_EXISTS" if seated.open else "SITTING_CLOSED"
        if player in self.frozen:
            return "PLAYER_FROZEN"
        if self.cash[player] < amount:
            return "INSUFFICIENT_FUNDS"
        self.cash[player] -= amount
        self.reservations[name] = Reservation(player, epoch, sitting, seat, amount)
        return f"OK {name}"

    def commit(self, name: str) -> str:
        held = self.reservations.get(name)
        if held is None or not held.player:
            return "RESERVATION_NOT_FOUND"
        if held.state != "open":
            return "RESERVATION_CLOSED"
        if held.epoch < self.epoch:
            return "STALE_EPOCH"
        seated = self.sittings.get(held.sitting)
        if seated:
            return "SITTING_EXISTS" if seated.open else "SITTING_CLOSED"
        if held.player in self.frozen:
            return "PLAYER_FROZEN"
        self.sittings[held.sitting] = Sitting(held.player, held.seat, held.amount)
        held.state = "committed"
        return f"OK {held.amount}"

    def release(self, name: str) -> str:
        held = self.reservations.get(name)
        if held is None:
            self.reservations[name] = Reservation("", 0, "", 0, 0, "released")
            return "RESERVATION_NOT_FOUND"
        return self.expire(name)

    def expire(self, name: str) -> str:
        held = self.reservations.get(name)
        if held is None or not held.player:
            return "RESERVATION_NOT_FOUND"
        if held.state == "committed":
            return "RESERVATION_CLOSED"
        if held.state == "open":
            self.cash[held.player] += held.amount
            held.state = "given back"
        return f"OK {held.amount}"

    def reserved(self, player: str) -> int:
        """What the player's open reservations hold."""
        return sum(held.amount for held in self.reservations.values() if held.state == "open" and held.player == player)

    def buy_in(self, epoch: int, name: str, player: str, amount: int, seat: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        known = self.sittings.get(name)
        if known:
            return "SITTING_EXISTS" if known.open else "SITTING_CLOSED"
        if player in self.frozen:
            return "PLAYER_FROZEN"
        if self.cash[player] < amount:
            return "INSUFFICIENT_FUNDS"
        self.cash[player] -= amount
        self.sittings[name] = Sitting(player, seat, amount)
        return f"OK {amount}"

    def top_up(self, epoch: int, name: str, amount: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        refusal = self._not_open(name)
        if refusal:
            return refusal
        sitting = self.sittings[name]
        if sitting.locked:
            return "STACK_LOCKED"
        if sitting.player in self.frozen:
            return "PLAYER_FROZEN"
        if self.cash[sitting.player] < amount:
            return "INSUFFICIENT_FUNDS"
        self.cash[sitting.player] -= amount
        sitting.stack += amount
        return f"OK {sitting.stack}"

    def cash_out(self, epoch: int, name: str) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        sitting = self.sittings.setdefault(name, Sitting("", 0, 0, open=False))
        if not sitting.player:
            return "SITTING_NOT_FOUND"
        if not sitting.open:
            return f"OK {sitting.took}"
        if sitting.locked:
            return "STACK_LOCKED"
        self.cash[sitting.player] += sitting.stack
        sitting.took, sitting.stack, sitting.open = sitting.stack, 0, False
        return f"OK {sitting.took}"

    def forced(self, epoch: int, number: int, dealt_in: tuple[str, ...], antes: tuple, carry: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        known = self.hands.get(number)
        if known:
            return "STEP_OUT_OF_ORDER" if known.outcome == "open" else "HAND_CLOSED"
        if number <= self.last:
            return "HAND_CLOSED"
        if self.open_hand:
            return "OTHER_HAND_OPEN"
        for name in dealt_in:
            refusal = self._not_open(name)
            if refusal:
                return refusal
        if any(name not in dealt_in for name, _ in antes):
            return "SITTING_NOT_DEALT_IN"
        if any(self.sittings[name].player in self.frozen for name in dealt_in):
            return "PLAYER_FROZEN"
        if carry != self.carry:
            return "CARRY_MISMATCH"
        if not self._can_pay(antes):
            return "INSUFFICIENT_FUNDS"
        hand = self.hands[number] = Hand("open", carried=self.carry, dealt_in=dealt_in, epoch=epoch)
        self.carry = 0
        self._pay(hand, antes)
        self.open_hand = self.last = number
        for name in dealt_in:
            self.sittings[name].locked = number
        return f"OK {hand.pot}"

    def collect(self, epoch: int, number: int, round_no: int, bets: tuple, back: tuple) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        refusal = self._hand_not_open(number)
        if refusal:
            return refusal
        hand = self.hands[number]
        if round_no <= hand.round:
            return "STEP_OUT_OF_ORDER"
        if any(name not in hand.dealt_in for name, _ in bets + back):
            return "SITTING_NOT_DEALT_IN"
        if not _holds(hand, bets, back):
            return "RETURN_TOO_LARGE"
        if not self._can_pay(bets):
            return "INSUFFICIENT_FUNDS"
        self._pay(hand, bets)
        self._pay(hand, tuple((name, -amount) for name, amount in back))
        hand.round = round_no
        return f"OK {hand.pot}"

    def award(self, epoch: int, number: int, wins: tuple, rake: int, carry: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        refusal = self._hand_not_open(number)
        if refusal:
            return refusal
        hand = self.hands[number]
        if any(name not in hand.dealt_in for name, _ in wins):
            return "SITTING_NOT_DEALT_IN"
        if sum(amount for _, amount in wins) + rake + carry != hand.pot:
            return "POT_MISMATCH"
        for name, amount in wins:
            self.sittings[name].stack += amount
        self.rake += rake
        self.carry = carry
        for name, amount in hand.paid.items():
            self.carry_paid[name] = self.carry_paid.get(name, 0) + amount
        if not carry:
            self.carry_paid = {}
        self._close(hand, "awarded")
        return "OK " + self._stacks(hand.dealt_in)

    def void(self, epoch: int, number: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        hand = self.hands.get(number)
        if hand and hand.outcome == "awarded":
            return "HAND_CLOSED"
        if hand is None:
            self.hands[number] = Hand("void")
            if not self.open_hand:
                self.last = max(self.last, number)
            return f"OK  {self.carry}"
        if hand.outcome == "void":
            return f"OK  {self.carry}"
        self._undo(hand)
        return f"OK {self._stacks(hand.dealt_in)} {self.carry}"

    def fence(self, epoch: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        hand = self.hands.get(self.open_hand)
        if self.fenced != epoch and hand and hand.epoch < epoch:
            self._undo(hand)
        self.fenced = epoch
        return "OK"

    def refund(self, epoch: int) -> str:
        if self._stale(epoch):
            return "STALE_EPOCH"
        if self.open_hand:
            return "OTHER_HAND_OPEN"
        amount, paid = self.carry, {name: paid for name, paid in self.carry_paid.items() if paid}
        if amount:
            whole, left = sum(paid.values()), amount
            order = sorted(paid, key=lambda name: self.sittings[name].seat)
            shares = {name: amount * paid[name] // whole for name in order}
            left -= sum(shares.values())
            for at, name in enumerate(order):
                self.cash[self.sittings[name].player] += shares[name] + (1 if at < left else 0)
            self.carry, self.carry_paid = 0, {}
        return f"OK {amount}"

    def total(self) -> int:
        """Everything inside the house, less what came in: 0."""
        pots = sum(hand.pot for hand in self.hands.values() if hand.outcome == "open")
        stacks = sum(sitting.stack for sitting in self.sittings.values())
        held = sum(held.amount for held in self.reservations.values() if held.state == "open")
        return sum(self.cash.values()) + held + stacks + pots + self.carry + self.rake - self.issued

    def _stale(self, epoch: int) -> bool:
        if epoch < self.epoch:
            return True
        self.epoch = epoch
        return False

    def _not_open(self, name: str) -> str:
        sitting = self.sittings.get(name)
        if sitting is None or not sitting.player:
            return "SITTING_NOT_FOUND"
        return "" if sitting.open else "SITTING_CLOSED"

    def _hand_not_open(self, number: int) -> str:
        hand = self.hands.get(number)
        if hand is None:
            return "HAND_NOT_OPEN"
        return "" if hand.outcome == "open" else "HAND_CLOSED"

    def _can_pay(self, amounts: tuple) -> bool:
        due: dict[str, int] = {}
        for name, amount in amounts:
            due[name] = due.get(name, 0) + amount
        return all(self.sittings[name].stack >= amount for name, amount in due.items())

    def _pay(self, hand: Hand, amounts: tuple) -> None:
        for name, amount in amounts:
            self.sittings[name].stack -= amount
            hand.paid[name] = hand.paid.get(name, 0) + amount

    def _undo(self, hand: Hand) -> None:
        for name, amount in hand.paid.items():
            self.sittings[name].stack += amount
        self.carry += hand.carried
        self._close(hand, "void")

    def _close(self, hand: Hand, outcome: str) -> None:
        hand.outcome = outcome
        self.open_hand = 0
        for name in hand.dealt_in:
            self.sittings[name].locked = 0

    def _stacks(self, names: tuple[str, ...]) -> str:
        order = sorted(names, key=lambda name: (self.sittings[name].seat, name))
        return ",".join(f"{name}={self.sittings[name].stack}" for name in order)


def _holds(hand: Hand, bets: tuple, back: tuple) -> bool:
    """Whether a hand holds of each sitting what it is to give back."""
    paid = dict(hand.paid)
    for name, amount in (*bets, *((name, -amount) for name, amount in back)):
        paid[name] = paid.get(name, 0) + amount
    return all(paid[name] >= 0 for name, _ in back)
