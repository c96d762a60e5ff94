"""One step of a table in the making: a fork of its state, what will be told, and what the clock should do.

Nothing of it counts until the store has committed it; a refusal simply drops it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from fivedraw.table.v1 import event_pb2
from google.protobuf.message import Message

from services.runtime.errors import Fault, to_status
from services.table.state import (
    ANSWERS_PER_CALLER_MAX,
    CALLERS_REMEMBERED_MAX,
    Answered,
    AnyEffect,
    Effect,
    Hand,
    Request,
    Seat,
    TableClock,
    TableState,
)
from services.table.store import CLEAR_DEADLINE, KEEP_DEADLINE
from services.table.wanted import Wanted, wanted_of

E = TypeVar("E", bound=Effect)

# Events that are no part of a hand's history, though they may come in the middle of one.
BESIDE_THE_HAND: Final = frozenset({"waiting_list_changed", "chat_sent"})

# The first byte of a remembered answer: a message of the contract, or a `google.rpc.Status`.
OK: Final = b"\x00"
REFUSED: Final = b"\x01"


class PrivateForm(NamedTuple):
    """An event as one player may see it."""

    seat: int
    player: str
    event: event_pb2.TableEvent


class Told(NamedTuple):
    """An event as everybody sees it, and as those see it who may see more."""

    public: event_pb2.TableEvent
    private: list[PrivateForm]


class Draft:
    """A step being made from `base`. `now_ms` and `deadline_ms` are in the store's time (0: no deadline).

    `kept` is what the registry is taken to know of the table's mode. With `must_keep_mode` the step counts only if the
    registry keeps the mode that it leaves: somebody is answered for it.
    """

    def __init__(self, base: TableState, now_ms: int, deadline_ms: int = 0) -> None:
        self.state = base.fork()
        self.now_ms = now_ms
        self.deadline_ms = deadline_ms
        self.told: list[Told] = []
        self.deadline = KEEP_DEADLINE
        self.kept = wanted_of(base)
        self.must_keep_mode = False

    def tell(self, private: dict[int, dict[str, Any]] | None = None, /, player: str = "", **body: Any) -> int:
        """Appends an event and returns its sequence.

        `body` is the one field of `TableEvent.body` that is set; `private` is that field for the seats that may see
        more, by seat. `player` names somebody without a seat, who stands there as seat 0.
        """
        state = self.state
        state.sequence += 1
        # A hand shown after the end still belongs to its hand.
        ongoing = state.hand is not None and (not state.hand.settled or "hand_shown" in body)
        ongoing = ongoing and body.keys().isdisjoint(BESIDE_THE_HAND)
        hand = state.hand.number if state.hand is not None and ongoing else 0
        head: dict[str, Any] = {"sequence": state.sequence, "epoch": state.epoch, "hand": hand}
        told = Told(event_pb2.TableEvent(**head, **body), [])
        for seat, more in (private or {}).items():
            owner = self._player_at(seat) if seat else player
            told.private.append(PrivateForm(seat, owner, event_pb2.TableEvent(**head, **more)))
        self.told.append(told)
        return state.sequence

    def start_clock(self, clock: TableClock) -> None:
        """Runs this clock from the commit on, in place of any other."""
        self.state.clock = clock
        self.deadline = clock.duration_ms

    def stop_clock(self) -> None:
        """Stops the clock."""
        if self.state.clock is not None:
            self.state.clock = None
            self.deadline = CLEAR_DEADLINE

    def hold_clock(self, left_ms: int) -> None:
        """Keeps the clock but stands it still, with this much left."""
        if self.state.clock is not None:
            self.state.clock = msgspec.structs.replace(self.state.clock, left_ms=left_ms)
            self.deadline = CLEAR_DEADLINE

    def add_effect(self, kind: type[E], **facts: Any) -> None:
        """Appends an effect to those that are still to be done."""
        state = self.state
        state.effects_made += 1
        hand = facts.pop("hand", state.hand.number if state.hand is not None else 0)
        effect: AnyEffect = kind(number=state.effects_made, hand=hand, **facts)  # type: ignore[assignment]
        state.effects = (*state.effects, effect)

    def finish_effect(self) -> None:
        """Takes the first effect off the list: it was done."""
        self.state.effects = self.state.effects[1:]

    def answer(self, request: Request, answer: Message) -> None:
        """Remembers the answer of a request, in place of an older one of the same id."""
        self._remember(request, OK + answer.SerializeToString())

    def refuse(self, request: Request, fault: Fault) -> None:
        """Remembers that a request was refused after all."""
        self._remember(request, REFUSED + to_status(fault).SerializeToString())

    def promise(self, request: Request) -> None:
        """Remembers that a request was taken in and its answer is still to come."""
        self._remember(request, b"")

    def _remember(self, request: Request, answer: bytes) -> None:
        answers = self.state.answers
        kept = tuple(
            answered for answered in answers.pop(request.caller, ()) if answered.request_id != request.request_id
        )
        fresh = Answered(request.request_id, request.digest, answer)
        answers[request.caller] = (*kept, fresh)[-ANSWERS_PER_CALLER_MAX:]
        while len(answers) > CALLERS_REMEMBERED_MAX:
            del answers[next(iter(answers))]

    def count_mode(self) -> Wanted | None:
        """Numbers the mode that this step leaves, if it is another one. What the registry is to keep, or None."""
        wanted = wanted_of(self.state)
        if (wanted.mode, wanted.reason) == (self.kept.mode, self.kept.reason):
            return wanted if self.must_keep_mode else None
        self.state.mode_number = self.kept.number + 1
        return wanted_of(self.state)

    def change_hand(self, **changes: Any) -> Hand:
        """Replaces fields of the hand."""
        if self.state.hand is None:
            raise ValueError("there is no hand to change")
        self.state.hand = msgspec.structs.replace(self.state.hand, **changes)
        return self.state.hand

    def change_seat(self, number: int, **changes: Any) -> Seat:
        """Replaces fields of a seat."""
        self.state.seats[number] = seat = msgspec.structs.replace(self.state.seats[number], **changes)
        return seat

    def _player_at(self, seat: int) -> str:
        hand = self.state.hand
        if hand is not None and seat in hand.players:
            return hand.players[seat]
        return self.state.seats[seat].player
