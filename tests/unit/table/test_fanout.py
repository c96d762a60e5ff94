"""What is handed to watchers: one message for all who see no more than everybody; a bound for those who are slow."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.table.v1 import event_pb2

from services.table import fanout
from services.table.bus import Batch, Entry, Private
from services.table.fanout import Fanout, Offer

AT_MS = 1_700_000_000_000


def batch(first: int = 7, private_to: str = "players/ann", epoch: int = 1) -> Batch:
    """Two events; the second has a form of its own for one player."""
    chat = event_pb2.TableEvent(sequence=first, epoch=epoch, chat_sent=event_pb2.ChatSent(seat=1, text="hello"))
    turn = event_pb2.TableEvent(sequence=first + 1, epoch=epoch, turn_started=event_pb2.TurnStarted())
    turn.turn_started.turn.seat = 2
    turn.turn_started.turn.deadline.FromMilliseconds(20_000)
    own = (Private(2, private_to, b"sealed"),)
    return Batch(epoch, first, (Entry(chat.SerializeToString()), Entry(turn.SerializeToString(), own)), AT_MS)


def test_what_everybody_sees_is_made_once_with_the_commits_time_in_it():
    offer = Offer((batch(),))
    told = offer.for_all()
    assert told is offer.for_all()
    assert [event.sequence for event in told.events] == [7, 8]
    assert told.events[0].commit_time.ToMilliseconds() == AT_MS
    assert told.events[1].turn_started.turn.deadline.ToMilliseconds() == AT_MS + 20_000


def test_who_has_a_form_of_their_own_is_known():
    offer = Offer((batch(), batch(9, private_to="players/ann")))
    assert offer.is_private("players/ann")
    assert not offer.is_private("players/bob")
    assert not offer.is_private("")


async def test_all_watchers_of_a_commit_share_it():
    table = Fanout()
    players = [table.add(f"players/{name}") for name in ("ann", "bob")]
    observers = [table.add(f"players/{name}", is_observer=True) for name in ("cid", "dot")]
    table.offer(batch(private_to="players/zoe"))
    assert players[0].queue.get_nowait() is players[1].queue.get_nowait()
    assert await observers[0].queue.get() is await observers[1].queue.get()
    assert (table.observers, table.is_empty) == ({"players/cid", "players/dot"}, False)
    for watcher in (*players, *observers):
        table.remove(watcher)
    assert table.is_empty


async def test_observers_are_told_together_of_what_follows_on():
    table = Fanout()
    player, observer = table.add("players/ann"), table.add("", is_observer=True)
    for first in (7, 9, 11, 15, 17):
        table.offer(batch(first))
    assert player.queue.qsize() == 5
    assert observer.queue.empty()
    told = [await observer.queue.get() for _ in range(2)]
    assert [(offer.first, offer.last) for offer in told] == [(7, 12), (15, 18)]
    assert [event.sequence for event in told[0].for_all().events] == list(range(7, 13))
    assert observer.queue.empty()


async def test_an_epoch_is_never_told_together_with_another():
    table = Fanout()
    observer = table.add("", is_observer=True)
    table.offer(batch(7))
    table.offer(batch(9, epoch=2))
    told = [await observer.queue.get() for _ in range(2)]
    assert [(offer.epoch, offer.first) for offer in told] == [(1, 7), (2, 9)]


async def test_observers_are_told_at_once_when_much_has_gathered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fanout, "GATHER_MAX", 3)
    table = Fanout()
    observer = table.add("", is_observer=True)
    for first in (1, 3, 5, 7):
        table.offer(batch(first))
    assert observer.queue.qsize() == 1
    assert (await observer.queue.get()).last == 6
    # The fourth waits for its own turn, not for the timer of the first three.
    assert (await observer.queue.get()).first == 7


async def test_an_observer_who_took_a_seat_is_told_at_once_from_the_first_own_event_on():
    table = Fanout()
    seated, other = table.add("players/bob", is_observer=True), table.add("players/cid", is_observer=True)
    table.offer(batch(7))
    table.offer(batch(9, private_to="players/bob"))
    assert [seated.queue.get_nowait().first for _ in range(2)] == [7, 9]
    assert table.observers == {"players/cid"}
    table.offer(batch(11))
    assert seated.queue.get_nowait().first == 11
    # The other has had what was told because of the newcomer, and gets the rest as observers do.
    assert other.queue.get_nowait().first == 7
    assert other.queue.empty()
    last = await other.queue.get()
    assert (last.first, last.last) == (9, 12)
    table.remove(seated)
    table.remove(other)
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
        assert quick.queue.get_nowait().first == first
    assert slow.overflowed
    assert [slow.queue.get_nowait().first for _ in range(2)] == [1, 3]
    table.offer(batch(9))
    assert slow.queue.empty()
