"""A hand played by the engine with the real deck logic: what `scenario`, `replay` and the fuzzer drive."""

from __future__ import annotations

from services.deck import dealing
from services.rules.awaits import AwaitDeal, AwaitExchange, AwaitLateCard
from services.rules.commands import AnyCommand, Begin, DeliverDeal, DeliverExchange, DeliverLateCard
from services.rules.events import AnyEvent
from services.rules.hand import awaits, step
from services.rules.state import HandState


class DealtHand:
    """A hand between two choices of its players. Cards are delivered as soon as they are due.

    state   the engine's state
    deck    the deck's state
    events  everything that happened so far
    """

    def __init__(self, state: HandState, order: tuple[int, ...], shuffler: dealing.Shuffler) -> None:
        self.state = state
        self.deck = dealing.open_deck(order)
        self.events: list[AnyEvent] = []
        self._shuffler = shuffler

    def begin(self) -> None:
        """Post the forced bets and deal."""
        self.do(Begin())

    def do(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        """Carry out a command and the deliveries that follow; the events are those of the command alone.

        Raises `Refusal`; then nothing has changed.
        """
        events = self._apply(command)
        while (delivery := self._due()) is not None:
            self._apply(delivery)
        return events

    def _apply(self, command: AnyCommand) -> tuple[AnyEvent, ...]:
        events, self.state = step(self.state, command)
        self.events.extend(events)
        return events

    def _due(self) -> AnyCommand | None:
        if self.state.to_act >= 0:
            return None
        due = awaits(self.state)
        if isinstance(due, AwaitDeal):
            self.deck, dealt = dealing.deal(self.deck, due.seats)
            return DeliverDeal({seat: dealt.of(seat) for seat in due.seats})
        if isinstance(due, AwaitExchange):
            self.deck, dealt = dealing.exchange(
                self.deck,
                due.seat,
                due.discards,
                due.draw_now,
                shuffler=self._shuffler,
                folded=due.folded,
                mixed=due.mixed,
            )
            return DeliverExchange(due.seat, dealt.of(due.seat), bool(dealt.reshuffles))
        if isinstance(due, AwaitLateCard):
            self.deck, dealt = dealing.late_card(
                self.deck, due.seat, burn=due.burn, shuffler=self._shuffler, folded=due.folded, mixed=due.mixed
            )
            (card,) = dealt.of(due.seat)
            return DeliverLateCard(due.seat, card, bool(dealt.burned), bool(dealt.reshuffles))
        return None
