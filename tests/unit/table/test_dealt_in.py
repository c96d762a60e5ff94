"""Who is dealt into the next hand, where what seats wish leaves few of them."""

from __future__ import annotations

from services.table import asks
from tests.unit.table.scripted import Table, player_at


def test_one_seat_that_would_not_post_and_no_other_deals_nothing() -> None:
    table = Table("house").sit(1, 2)
    table.next_hand().play_out().work()
    table.ask(asks.UpdateSeat, player_at(1), auto_post=False)
    table.ask(asks.UpdateSeat, player_at(2), True)
    table.time_out()
    table.work()
    assert table.state.playing is None
    assert table.deadline_ms == 0
    table.ask(asks.UpdateSeat, player_at(1), auto_post=True)
    table.ask(asks.UpdateSeat, player_at(2), False)
    assert table.next_hand().hand.seats == (1, 2)
