"""The deck service's domain: one method for each call, for the gRPC layer and for a house in one process alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

from sqlalchemy import Connection

from services.deck import dealing, requests
from services.deck.drbg import Entropy
from services.deck.proofs import proof_of
from services.deck.queue import StepQueue
from services.deck.randomness import Randomness
from services.deck.records import HandRecord
from services.deck.requests import SEAT_MAX
from services.deck.rotation import rotate
from services.deck.sealed import HandSealer
from services.deck.shuffling import PlayerSeed
from services.deck.store import read_hand
from services.deck.values import (
    Closed,
    Dealt,
    Exchanged,
    Fenced,
    Frozen,
    HandKey,
    LateDealt,
    Opened,
    Proof,
    ReshuffleRule,
    RngHealth,
    SeatCards,
)
from services.runtime.clock import Clock
from services.runtime.database import Database
from services.runtime.errors import Fault
from services.runtime.sealing import Sealer

T = TypeVar("T")

DISCARDS_MAX: Final = 5
SEED_DELAY_MS: Final = 24 * 3_600_000
SEEN_CARDS_MAX: Final = 9 * 10


class Decks:
    """All decks of the house, in one SQL database; any number of replicas may serve the same one.

    `sealer` holds the service's keys; `entropy` is the operating system's, and only a test or a simulation gives
    another; `seed_delay_ms` is how long after a hand's close its seed stays closed to auditors.
    All methods raise `Fault`, with the reasons that the service's proto lists, and then nothing has changed.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        sealer: Sealer,
        *,
        entropy: Entropy = os.urandom,
        seed_delay_ms: int = SEED_DELAY_MS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._sealer = HandSealer(sealer)
        self._seed_delay_ms = seed_delay_ms
        self._randomness = Randomness(entropy, clock)
        self._queue = StepQueue(db, clock, self._randomness, self._sealer)

    def self_test(self) -> None:
        """Tests generator and shuffle before the first hand. Raises `Fault` DECK_UNHEALTHY."""
        self._randomness.self_test()

    async def close(self) -> None:
        """Answers the steps that were accepted; the database is its owner's to close."""
        await self._queue.close()

    async def open_deck(self, key: HandKey, step_id: str) -> Opened:
        """Opens a hand's deck with the seed that was committed before."""
        _check(key, step_id)
        return _expect(Opened, await self._queue.take(requests.OpenDeck(key, step_id)))

    async def cut_deck(
        self, key: HandKey, step_id: str, *, cut: bytes = b"", player_seeds: Sequence[PlayerSeed] = ()
    ) -> Frozen:
        """Shuffles and freezes the deck with the players' part of the entropy."""
        _check(key, step_id)
        requests.check_entropy(cut, player_seeds)
        return _expect(Frozen, await self._queue.take(requests.CutDeck(key, step_id, cut, tuple(player_seeds))))

    async def deal_cards(self, key: HandKey, step_id: str, *, seats: Sequence[int]) -> Dealt:
        """Deals five cards to each of 2 to 9 seats, one at a time, in the order given."""
        _check(key, step_id)
        requests.check_seats("seats", seats, requests.DEAL_SEATS_MIN, SEAT_MAX)
        return _expect(Dealt, await self._queue.take(requests.DealCards(key, step_id, tuple(seats))))

    async def exchange_cards(
        self,
        key: HandKey,
        step_id: str,
        *,
        seat: int,
        discards: Sequence[str],
        draw_now: int | None = None,
        folded_seats: Sequence[int] = (),
        rule: ReshuffleRule = ReshuffleRule.STUB_FIRST,
    ) -> Exchanged:
        """Takes a seat's discards and gives it `draw_now` new cards: as many (by default), or 3 of a four-card draw."""
        _check(key, step_id)
        requests.check_seat("seat", seat)
        given_up = requests.card_numbers("discards", discards, DISCARDS_MAX)
        requests.check_seats("folded_seats", folded_seats, 0, SEAT_MAX)
        count = len(given_up) if draw_now is None else draw_now
        if not dealing.may_draw(len(given_up), count):
            what = f"draw_now must be {len(given_up)}, as many as the discards (or 3 of 4), not {count}"
            raise Fault("INVALID_REQUEST", what, field="draw_now")
        step = requests.ExchangeCards(key, step_id, seat, given_up, count, tuple(folded_seats), rule)
        return _expect(Exchanged, await self._queue.take(step))

    async def deal_late_card(
        self,
        key: HandKey,
        step_id: str,
        *,
        seat: int,
        burn: bool = False,
        folded_seats: Sequence[int] = (),
        rule: ReshuffleRule = ReshuffleRule.STUB_FIRST,
    ) -> LateDealt:
        """Gives a seat the fourth card of its four-card draw, after burning one if asked to."""
        _check(key, step_id)
        requests.check_seat("seat", seat)
        requests.check_seats("folded_seats", folded_seats, 0, SEAT_MAX)
        step = requests.DealLateCard(key, step_id, seat, burn, tuple(folded_seats), rule)
        return _expect(LateDealt, await self._queue.take(step))

    async def close_deck(self, key: HandKey, step_id: str, *, void: bool = False) -> Closed:
        """Closes a hand's deck and commits to the seed of the table's next one."""
        _check(key, step_id)
        return _expect(Closed, await self._queue.take(requests.CloseDeck(key, step_id, void)))

    async def fence_table(self, table: str, epoch: int) -> Fenced:
        """Raises a table's epoch; an open deck of an older epoch is closed as void.

        The same epoch again changes nothing and tells the same voided hand, with the commitment that is open by then:
        none any more once the next deck has been opened with it.
        """
        requests.check_table(table)
        requests.check_epoch(epoch)
        return _expect(Fenced, await self._queue.take(requests.FenceTable(table, epoch)))

    async def draw_lots(self, table: str, step_id: str, *, seats: Sequence[int]) -> int:
        """A uniform choice among 1 to 9 seats."""
        requests.check_table(table)
        requests.check_step_id(step_id)
        requests.check_seats("seats", seats, 1, SEAT_MAX)
        return _expect(int, await self._queue.take(requests.DrawLots(table, step_id, tuple(seats))))

    async def get_fairness_proof(
        self,
        table: str,
        hand: int,
        *,
        seen_hands: Sequence[SeatCards] = (),
        seen: Sequence[str] = (),
        open_seed: bool = False,
    ) -> Proof:
        """The proof of a closed hand for one viewer.

        `seen_hands` are the cards seen in each seat's hand; `seen` are cards without a seat, opened only where one
        seat alone had them. `open_seed`, for auditors, opens seed and all places once the delay is over.
        """
        requests.check_key(HandKey(table, 1, hand))
        seen_cards = []
        for each in seen_hands:
            requests.check_seat("seen_hands", each.seat)
            numbers = requests.card_numbers("seen_hands", each.cards, SEEN_CARDS_MAX)
            seen_cards += [(each.seat, number) for number in numbers]
        loose = requests.card_numbers("seen", seen, SEEN_CARDS_MAX)
        record = await self._db.read(self._read_hand, table, hand)
        if record is None:
            raise Fault("HAND_NOT_FOUND", f"hand {hand} at {table} never had a deck", table=table, hand=str(hand))
        if record.stage.is_open:
            raise Fault("HAND_NOT_CLOSED", f"hand {hand} at {table} is being played", table=table, hand=str(hand))
        due_ms = record.closed_ms + self._seed_delay_ms
        if open_seed and self._clock.now_ms() < due_ms:
            raise Fault("SEED_NOT_DUE", f"the seed of hand {hand} at {table} is not due yet", due_ms=str(due_ms))
        return proof_of(record, seen_cards, loose, with_seed=open_seed)

    async def rotate_keys(self) -> int:
        """Seals under the newest service key what is under an older one; returns how many keys and seeds it was."""
        return await rotate(self._db, self._sealer)

    def get_rng_health(self) -> RngHealth:
        """Health of this process's randomness."""
        chance = self._randomness
        health = chance.health
        return RngHealth(health.is_sound, health.fault, chance.shuffles, chance.reseeds, chance.last_test_ms)

    def _read_hand(self, conn: Connection, table: str, hand: int) -> HandRecord | None:
        return read_hand(conn, self._sealer, table, hand)


def _check(key: HandKey, step_id: str) -> None:
    requests.check_key(key)
    requests.check_step_id(step_id)


def _expect(kind: type[T], answer: object) -> T:
    if not isinstance(answer, kind):
        # The id belongs to a step of another kind; its digest differs, so this is never reached.
        raise TypeError(f"expected {kind.__name__}, got {type(answer).__name__}")
    return answer
