"""A table as its viewer sees it, kept up to date from a stream's snapshots and events."""

from __future__ import annotations

from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2


class TableMirror:
    """Folds a stream into one `TableView`, so that a player need not ask for the table after each event.

    `player` is the viewer's own name (`players/{player}`), by which its seat is known; empty for a mere watcher.
    `view` is the present view (an empty one before the first snapshot). Time banks are those of the last snapshot or
    change of a seat; everything that a decision needs is kept up to date.
    """

    def __init__(self, player: str = "") -> None:
        self._player = player
        self.view = table_pb2.TableView()
        self._commitment = b""

    def apply(self, message: table_service_pb2.WatchTableResponse) -> None:
        """Takes one message of the stream in."""
        if message.HasField("snapshot"):
            self.view = table_pb2.TableView()
            self.view.CopyFrom(message.snapshot)
        for event in message.events:
            self._apply_event(event)

    def seat(self, number: int) -> table_pb2.SeatView | None:
        """The seat of that number, if somebody sits there."""
        return next((seat for seat in self.view.seats if seat.seat == number), None)

    def own_seat(self) -> table_pb2.SeatView | None:
        """The viewer's own seat, if it has one."""
        return self.seat(self.view.your_seat) if self.view.your_seat else None

    def my_turn(self) -> bool:
        """Whether the viewer is to act."""
        view = self.view
        return bool(view.your_seat) and view.HasField("turn") and view.turn.seat == view.your_seat

    def hand_is_on(self) -> bool:
        """Whether a hand is being played."""
        return self.view.stage not in {table_pb2.STAGE_UNSPECIFIED, table_pb2.STAGE_FINISHED}

    def _apply_event(self, event: event_pb2.TableEvent) -> None:
        self.view.sequence = event.sequence
        body = event.WhichOneof("body")
        if body is None:
            return
        fold = getattr(self, f"_on_{body}", None)
        if fold is not None:
            fold(getattr(event, body), event)

    def _on_hand_started(self, body: event_pb2.HandStarted, event: event_pb2.TableEvent) -> None:
        view = self.view
        view.hand = event.hand
        view.table.hand = event.hand
        view.stage = table_pb2.STAGE_OPENING
        view.button = body.button
        view.pot_minor = body.carry_minor
        view.carry_minor = 0
        view.bet_level_minor = 0
        view.ClearField("your_cards")
        # Seeds are taken on only while a cut is waited for, which the turn after this event tells.
        self._commitment, view.seed_commitment = body.commitment, b""
        self._nobody_acts()
        stacks = {seat.seat: seat.stack_minor for seat in body.seats}
        for seat in view.seats:
            seat.dealt_in = seat.seat in stacks
            seat.stack_minor = stacks.get(seat.seat, seat.stack_minor)
            seat.bet_minor = 0
            seat.folded = seat.all_in = seat.pat_by_clock = False
            seat.drawn = -1
            seat.hand_name = ""
            seat.ClearField("shown")

    def _on_deck_committed(self, _: event_pb2.DeckCommitted, __: event_pb2.TableEvent) -> None:
        self._commitment, self.view.seed_commitment = b"", b""

    def _on_forced_bet_posted(self, body: event_pb2.ForcedBetPosted, _: event_pb2.TableEvent) -> None:
        self.view.pot_minor += body.amount_minor
        seat = self.seat(body.seat)
        if seat is None:
            return
        seat.stack_minor -= body.amount_minor
        seat.all_in = body.all_in
        if body.kind not in {table_pb2.FORCED_BET_KIND_ANTE, table_pb2.FORCED_BET_KIND_DEAD_BLIND}:
            seat.bet_minor += body.amount_minor

    def _on_cards_dealt(self, body: event_pb2.CardsDealt, _: event_pb2.TableEvent) -> None:
        self.view.your_cards[:] = body.your_cards

    def _on_stage_started(self, body: event_pb2.StageStarted, _: event_pb2.TableEvent) -> None:
        self.view.stage = body.stage
        self.view.pot_minor = body.pot_minor
        self._nobody_acts()

    def _on_turn_started(self, body: event_pb2.TurnStarted, _: event_pb2.TableEvent) -> None:
        self._nobody_acts()
        if self.view.stage == table_pb2.STAGE_OPENING and self._commitment:
            self.view.seed_commitment = self._commitment
        self.view.turn.CopyFrom(body.turn)
        if body.HasField("your_actions"):
            self.view.your_actions.CopyFrom(body.your_actions)

    def _on_action_taken(self, body: event_pb2.ActionTaken, _: event_pb2.TableEvent) -> None:
        self._nobody_acts()
        self.view.pot_minor += body.added_minor
        self.view.bet_level_minor = max(self.view.bet_level_minor, body.to_minor)
        seat = self.seat(body.seat)
        if seat is None:
            return
        seat.stack_minor -= body.added_minor
        seat.bet_minor += body.added_minor
        seat.all_in = body.all_in or seat.all_in
        seat.folded = seat.folded or body.kind == table_pb2.ACTION_KIND_FOLD

    def _on_bet_returned(self, body: event_pb2.BetReturned, _: event_pb2.TableEvent) -> None:
        self.view.pot_minor -= body.amount_minor
        seat = self.seat(body.seat)
        if seat is not None:
            seat.stack_minor += body.amount_minor
            seat.bet_minor = max(0, seat.bet_minor - body.amount_minor)
            seat.all_in = False

    def _on_bets_collected(self, body: event_pb2.BetsCollected, _: event_pb2.TableEvent) -> None:
        self.view.pot_minor = body.pot_minor
        self.view.bet_level_minor = 0
        for seat in self.view.seats:
            seat.bet_minor = 0

    def _on_cards_discarded(self, body: event_pb2.CardsDiscarded, _: event_pb2.TableEvent) -> None:
        self._nobody_acts()
        seat = self.seat(body.seat)
        if seat is not None:
            seat.drawn = body.count
            seat.pat_by_clock = body.by_clock
        if body.seat == self.view.your_seat:
            self.view.your_cards[:] = [card for card in self.view.your_cards if card not in set(body.your_discards)]

    def _on_cards_drawn(self, body: event_pb2.CardsDrawn, _: event_pb2.TableEvent) -> None:
        self.view.your_cards.extend(body.your_cards)

    def _on_hand_shown(self, body: event_pb2.HandShown, _: event_pb2.TableEvent) -> None:
        seat = self.seat(body.seat)
        if seat is not None:
            seat.shown[:] = body.cards
            seat.hand_name = body.hand_name

    def _on_hand_ended(self, body: event_pb2.HandEnded, _: event_pb2.TableEvent) -> None:
        self._hand_over(dict(body.stacks_minor), body.carry_minor)

    def _on_hand_voided(self, body: event_pb2.HandVoided, _: event_pb2.TableEvent) -> None:
        self._hand_over(dict(body.stacks_minor), body.carry_minor)
        self.view.seed_commitment = body.next_commitment

    def _on_hand_waiting(self, body: event_pb2.HandWaiting, _: event_pb2.TableEvent) -> None:
        self._nobody_acts()
        self.view.waiting = body.waiting

    def _on_hand_settled(self, body: event_pb2.HandSettled, _: event_pb2.TableEvent) -> None:
        self.view.stage = table_pb2.STAGE_UNSPECIFIED
        self.view.seed_commitment = body.next_commitment

    def _on_seat_taken(self, body: event_pb2.SeatTaken, _: event_pb2.TableEvent) -> None:
        self._put_seat(body.seat)
        if self._player and body.seat.player == self._player:
            self.view.your_seat = body.seat.seat

    def _on_seat_changed(self, body: event_pb2.SeatChanged, _: event_pb2.TableEvent) -> None:
        self._put_seat(body.seat)

    def _on_seat_left(self, body: event_pb2.SeatLeft, _: event_pb2.TableEvent) -> None:
        others = [seat for seat in self.view.seats if seat.seat != body.seat]
        del self.view.seats[:]
        self.view.seats.extend(others)
        if body.seat == self.view.your_seat:
            self.view.your_seat = 0

    def _on_stack_changed(self, body: event_pb2.StackChanged, _: event_pb2.TableEvent) -> None:
        seat = self.seat(body.seat)
        if seat is not None:
            seat.stack_minor = body.stack_minor

    def _on_table_paused(self, _: event_pb2.TablePaused, __: event_pb2.TableEvent) -> None:
        self.view.table.state = table_pb2.TABLE_STATE_PAUSED

    def _on_table_resumed(self, body: event_pb2.TableResumed, _: event_pb2.TableEvent) -> None:
        self.view.table.state = table_pb2.TABLE_STATE_OPEN
        if body.HasField("turn"):
            self.view.turn.CopyFrom(body.turn)

    def _on_table_closed(self, _: event_pb2.TableClosed, __: event_pb2.TableEvent) -> None:
        self.view.table.state = table_pb2.TABLE_STATE_CLOSED

    def _hand_over(self, stacks_minor: dict[int, int], carry_minor: int) -> None:
        self._nobody_acts()
        self.view.stage = table_pb2.STAGE_FINISHED
        self.view.carry_minor = carry_minor
        for seat in self.view.seats:
            seat.stack_minor = stacks_minor.get(seat.seat, seat.stack_minor)
            seat.bet_minor = 0

    def _nobody_acts(self) -> None:
        self.view.ClearField("turn")
        self.view.ClearField("your_actions")
        self.view.waiting = table_pb2.WAITING_UNSPECIFIED

    def _put_seat(self, changed: table_pb2.SeatView) -> None:
        others = [seat for seat in self.view.seats if seat.seat != changed.seat]
        mine = [*others, changed]
        del self.view.seats[:]
        self.view.seats.extend(sorted(mine, key=lambda seat: seat.seat))
