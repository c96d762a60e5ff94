"""What is handed to watchers: one message for all who see no more than everybody; a bound for those who are slow."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.table.v1 import event_pb2

from services.table import fanout
from services.table.bus import Batch, Entry, Private
from services.table.fanout import Fanout, Offer

AT_MS = 1_700_000_000_000


def batch(first: int = 7, private_to: str = "players/ann") -> Batch:
    """Two events; the second has a form of its own for one player."""
    chat = event_pb2.TableEvent(sequence=first, epoch=1, chat_sent=event_pb2.ChatSent(seat=1, text="hello"))
    turn = event_pb2.TableEvent(sequence=first + 1, epoch=1, turn_started=event_pb2.TurnStarted())
    turn.turn_started.turn.seat = 2
    turn.turn_started.turn.deadline.FromMilliseconds(20_000)
    own = (Private(2, private_to, b"sealed"),)
    return Batch(1, first, (Entry(chat.SerializeToString()), Entry(turn.SerializeToString(), own)), AT_MS)


def test_what_everybody_sees_is_made_once_with_the_commits_time_in_it():
    offer = Offer(batch())
    told = offer.for_all()
    assert told is offer.for_all()
    assert [event.sequence for event in told.events] == [7, 8]
    assert told.events[0].commit_time.ToMilliseconds() == AT_MS
    assert told.events[1].turn_started.turn.deadline.ToMilliseconds() == AT_MS + 20_000


def test_who_has_a_form_of_their_own_is_known():
    offer = Offer(batch(private_to="players/ann"))
    assert offer.is_private("players/ann")
    assert not offer.is_private("players/bob")
    assert not offer.is_private("")


def test_all_watchers_of_a_commit_share_it():
    table = Fanout()
    first, second = table.add("players/ann"), table.add("players/bob", is_observer=True)
    table.offer(batch())
    assert first.queue.get_nowait() is second.queue.get_nowait()
    assert (table.observers, table.is_empty) == ({"players/bob"}, False)
    table.remove(first)
    table.remove(second)
    assert table.is_empty


async def test_players_are_woken_before_observers():
    table = Fanout()
    woken: list[str] = []
    told = asyncio.Event()

    async def watch(name: str, is_observer: bool) -> None:
        watcher = table.add(f"players/{name}", is_observer)
        await watcher.queue.get()
        woken.append(name)
        if len(woken) == 12:
            told.set()

    names = [(f"observer {number}", True) for number in range(10)] + [("ann", False), ("bob", False)]
    async with asyncio.TaskGroup() as tasks:
        for name, is_observer in names:
            tasks.create_task(watch(name, is_observer))
        await asyncio.sleep(0)
        table.offer(batch())
        await told.wait()
    assert set(woken[:2]) == {"ann", "bob"}
    assert set(woken[2:]) == {name for name, is_observer in names if is_observer}


def test_a_watcher_without_room_gets_nothing_more_and_the_others_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fanout, "WATCHER_QUEUE_MAX", 2)
    table = Fanout()
    slow, quick = table.add("players/ann"), table.add("players/bob")
    for first in (1, 3, 5, 7):
        table.offer(batch(first))
        assert quick.queue.get_nowait().batch.first == first
    assert slow.overflowed
    assert [slow.queue.get_nowait().batch.first for _ in range(2)] == [1, 3]
    table.offer(batch(9))
    assert slow.queue.empty()
