"""Hands told in a few words, for tests: `Table(...).acts("S2 raise 30", "S3 fold", ...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from services.cli.dealt_hand import DealtHand
from services.rules.betting import LegalActions
from services.rules.cards import parse_cards
from services.rules.commands import Act, ClockRanOut, Discard
from services.rules.hand import legal, start_hand
from services.rules.refusals import Refusal
from services.rules.rulebook import load_rulebook
from services.rules.state import HandState


class Table:
    """A hand with a known deck. Seats not given cards get the next ones in order from 2c up."""

    def __init__(  # noqa: PLR0917
        self,
        rulebook: str,
        stacks: Mapping[int, int],
        button: int = 1,
        hands: Mapping[int, str] | None = None,
        stub: str = "",
        reshuffles: tuple[str, ...] = (),
        *,
        carry: int = 0,
        posts: Mapping[int, int] | None = None,
        dead_posts: Mapping[int, int] | None = None,
        auto_muck: Mapping[int, bool] | None = None,
        **options: Any,
    ) -> None:
        book = load_rulebook(rulebook).with_options(options)
        state = start_hand(book, stacks, button, carry, posts, dead_posts, auto_muck)
        given = {seat: parse_cards(cards) for seat, cards in (hands or {}).items()}
        stub_cards = parse_cards(stub)
        taken = {card for cards in given.values() for card in cards} | set(stub_cards)
        free = [card for card in range(52) if card not in taken]
        dealt = {seat: given.get(seat) or tuple(free.pop(0) for _ in range(5)) for seat in state.seats}
        listed = [dealt[seat][turn] for turn in range(5) for seat in state.seats] + list(stub_cards)
        order = (*listed, *(card for card in range(52) if card not in listed))
        self.scripted = [parse_cards(cards) for cards in reshuffles]
        self.hand = DealtHand(state, order, self._shuffle)
        self.hand.begin()

    def _shuffle(self, cards: tuple[int, ...], number: int) -> tuple[int, ...]:
        first = self.scripted[number - 1] if number <= len(self.scripted) else ()
        assert set(first) <= set(cards)
        return (*first, *(card for card in cards if card not in first))

    @property
    def state(self) -> HandState:
        return self.hand.state

    def acts(self, *steps: str) -> Table:
        """Steps like "S2 raise 30", "S2 discard 2c 3d", "S2 pat", "S2 clock"."""
        for text in steps:
            self.hand.do(_command(text))
        return self

    def refused(self, text: str) -> Refusal:
        """The refusal of a step, which changes nothing."""
        before = self.state
        with pytest.raises(Refusal) as caught:
            self.hand.do(_command(text))
        assert self.state == before
        return caught.value

    def legal(self) -> LegalActions:
        return legal(self.state, self.to_act)

    @property
    def to_act(self) -> int | None:
        return self.state.seat_at(self.state.to_act)

    def cards(self, seat: int) -> set[int]:
        return set(self.state.hands[self.state.position(seat)])

    def stacks(self) -> dict[int, int]:
        return dict(sorted(zip(self.state.seats, self.state.stacks, strict=True)))

    def drawn(self) -> dict[int, int]:
        return {seat: count for seat, count in zip(self.state.seats, self.state.drawn, strict=True) if count >= 0}

    def returned(self) -> dict[int, int]:
        return {seat: chips for seat, chips in zip(self.state.seats, self.state.returned, strict=True) if chips}

    def shown(self) -> list[int]:
        return [self.state.seats[position] for position in self.state.shown]

    def mucked(self) -> list[int]:
        return [self.state.seats[position] for position in self.state.mucked]

    def pots(self) -> list[tuple[int, dict[int, int]]]:
        return [(pot.amount, pot.winners) for pot in self.state.pots]


def _command(text: str) -> Any:
    who, what, *rest = text.split()
    seat = int(who.removeprefix("S"))
    if what == "clock":
        return ClockRanOut(seat)
    if what in ("pat", "discard"):
        return Discard(seat, parse_cards(rest))
    return Act(seat, what, int(rest[0]) if rest else 0)  # type: ignore[arg-type]


def same(*seats: int, chips: int = 500) -> dict[int, int]:
    """The same stack for each seat."""
    return dict.fromkeys(seats, chips)
