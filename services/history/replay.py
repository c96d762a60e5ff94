"""A hand as the stream of views that a watcher had: the table before it, then one message for each commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import event_pb2, table_pb2

Hand = history_service_pb2.Hand


@dataclass(frozen=True, slots=True)
class Replay:
    """The snapshot before the hand's first event, and the events, commit by commit."""

    snapshot: table_pb2.TableView
    commits: list[list[event_pb2.TableEvent]]

    def messages(self) -> Iterator[history_service_pb2.ReplayHandResponse]:
        """The messages of `ReplayHand`: the snapshot, then each commit."""
        yield history_service_pb2.ReplayHandResponse(snapshot=self.snapshot)
        for commit in self.commits:
            yield history_service_pb2.ReplayHandResponse(events=commit)


def replay(hand: Hand) -> Replay:
    """The replay of a hand as one viewer sees it; no commits where the log was lost."""
    commits = [
        list(events)
        for _, events in groupby(
            hand.events, key=lambda event: (event.epoch, event.commit_time.seconds, event.commit_time.nanos)
        )
    ]
    return Replay(_before(hand), commits)


def _before(hand: Hand) -> table_pb2.TableView:
    """The table as it was before the hand: seats with their stacks, no cards, nobody's turn."""
    first = hand.events[0].sequence if hand.events else 1
    return table_pb2.TableView(
        table=table_pb2.Table(
            name=hand.table,
            display_name=hand.table_display_name,
            rulebook=hand.rulebook,
            currency=hand.currency,
            options=hand.options,
            state=table_pb2.TABLE_STATE_OPEN,
            seats_taken=len(hand.seats),
            hand=hand.hand - 1,
            epoch=hand.epoch,
        ),
        sequence=first - 1,
        seats=[
            table_pb2.SeatView(
                seat=seat.seat,
                player=seat.player,
                display_name=seat.display_name,
                stack_minor=seat.stack_before_minor,
                drawn=-1,
            )
            for seat in hand.seats
        ],
        hand=hand.hand - 1,
        carry_minor=hand.carry_in_minor,
        your_seat=hand.your_seat,
    )
