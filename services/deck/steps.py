"""What each step does to the book: guards in the documented order, then the new records.

Order of refusals: STALE_EPOCH; the answer to a repeated step, or STEP_CONFLICT; HAND_CLOSED, HAND_NOT_OPEN; what the
stage does not allow; what the cards do not allow; DECK_UNHEALTHY.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, ParamSpec, TypeVar

from msgspec.structs import replace

from services.deck import cards, dealing, shuffling
from services.deck.commitments import FIRST_CHAIN, chain_link, leaves, root_of, seed_commitment
from services.deck.randomness import Randomness
from services.deck.records import HandRecord, Play, Secret, ShuffleSecret, Stage, Step, TableRecord
from services.deck.requests import (
    CloseDeck,
    CutDeck,
    DealCards,
    DealLateCard,
    DrawLots,
    ExchangeCards,
    FenceTable,
    HandStep,
    OpenDeck,
    Request,
)
from services.deck.store import Book
from services.deck.values import (
    Answer,
    Closed,
    Dealt,
    Exchanged,
    Fenced,
    Frozen,
    HandKey,
    LateDealt,
    Opened,
    Reshuffled,
    ReshuffleRule,
    SeatCards,
)
from services.runtime.errors import Fault

P = ParamSpec("P")
T = TypeVar("T")

_FULL_DECK: Final = tuple(range(dealing.DECK_SIZE))


class DeckBrokenError(RuntimeError):
    """A hand's cards are not the 52 any more. Never to be seen; nothing of the step is kept."""


def take(book: Book, randomness: Randomness, now_ms: int, request: Request) -> Answer | Fenced | int:
    """Takes one step. Raises `Fault`, and then the book is as it was."""
    match request:
        case FenceTable():
            return _fence(book, randomness, now_ms, request)
        case DrawLots():
            return _draw_lots(book, randomness, request)
        case OpenDeck():
            return _open(book, randomness, now_ms, request)
        case CloseDeck():
            return _close(book, randomness, now_ms, request)
        case _:
            return _play(book, randomness, request)


def _open(book: Book, randomness: Randomness, now_ms: int, request: OpenDeck) -> Answer:
    key = request.key
    table = _table_at(book, key)
    hand = book.hand(key.table, key.hand)
    if hand is not None and (repeated := _repeated(hand, request)) is not None:
        return repeated
    if table.open_hand and table.open_hand != key.hand:
        raise Fault(
            "OTHER_HAND_OPEN",
            f"{key.table} has hand {table.open_hand} open",
            table=key.table,
            hand=str(table.open_hand),
        )
    if hand is not None and hand.stage.is_open:
        raise Fault("STEP_CONFLICT", f"hand {key.hand} was opened by another step", **_facts(key))
    if key.hand <= table.last_hand:
        raise _closed(key, hand)
    randomness.health.require()
    seed = table.next_seed or randomness.seed()
    commitment = seed_commitment(seed)
    number = table.deck_number + 1
    chain = chain_link(table.chain, key.table, number, key.hand, commitment)
    answer = Opened(number, commitment, chain)
    record = HandRecord(
        table=key.table,
        hand=key.hand,
        epoch=key.epoch,
        deck_number=number,
        stage=Stage.OPENED,
        commitment=commitment,
        previous_chain=table.chain,
        chain=chain,
        opened_ms=now_ms,
        closed_ms=0,
        key=randomness.hand_key(),
        secret=Secret(seed),
        play=Play(),
    )
    book.put_hand(_with_step(record, request, answer))
    book.put_table(
        replace(
            table,
            epoch=key.epoch,
            open_hand=key.hand,
            last_hand=key.hand,
            deck_number=number,
            chain=chain,
            next_commitment=b"",
            next_seed=b"",
        )
    )
    return answer


def _close(book: Book, randomness: Randomness, now_ms: int, request: CloseDeck) -> Answer:
    key = request.key
    table = _table_at(book, key)
    hand = book.hand(key.table, key.hand)
    if hand is None:
        raise _not_open(key, table)
    if (repeated := _repeated(hand, request)) is not None:
        return repeated
    stage = Stage.VOID if request.void else Stage.CLOSED
    if not hand.stage.is_open:
        # A fence, or this step under an older id, may have closed it already; the outcome is what counts.
        if hand.stage is stage and table.last_hand == key.hand:
            return Closed(table.next_commitment)
        raise _closed(key, hand)
    next_seed = randomness.next_seed()
    commitment = seed_commitment(next_seed) if next_seed else b""
    answer = Closed(commitment)
    book.put_hand(_with_step(replace(hand, stage=stage, closed_ms=now_ms), request, answer))
    book.put_table(replace(table, epoch=key.epoch, open_hand=0, next_commitment=commitment, next_seed=next_seed))
    return answer


def _fence(book: Book, randomness: Randomness, now_ms: int, request: FenceTable) -> Fenced:
    table = book.table(request.table) or _new_table(request.table)
    if request.epoch < table.epoch:
        raise _stale(request.table, request.epoch, table)
    if request.epoch == table.fence_epoch:
        return Fenced(table.fence_voided, table.next_commitment)
    hand = book.hand(request.table, table.open_hand) if table.open_hand else None
    voided = 0
    if hand is not None and hand.epoch < request.epoch:
        voided = hand.hand
        next_seed = randomness.next_seed()
        commitment = seed_commitment(next_seed) if next_seed else b""
        book.put_hand(replace(hand, stage=Stage.VOID, closed_ms=now_ms))
        table = replace(table, open_hand=0, next_commitment=commitment, next_seed=next_seed)
    book.put_table(replace(table, epoch=request.epoch, fence_epoch=request.epoch, fence_voided=voided))
    return Fenced(voided, table.next_commitment)


def _draw_lots(book: Book, randomness: Randomness, request: DrawLots) -> int:
    digest = request.digest()
    drawn = book.lot(request.table, request.step_id)
    if drawn is not None:
        if drawn[0] != digest:
            raise _conflict(request.step_id)
        return drawn[1]
    seat = request.seats[randomness.lot(len(request.seats))]
    book.put_lot(request.table, request.step_id, digest, seat)
    return seat


def _play(book: Book, randomness: Randomness, request: CutDeck | DealCards | ExchangeCards | DealLateCard) -> Answer:
    """The steps between opening and closing: same guards, one changed hand."""
    key = request.key
    table = _table_at(book, key)
    hand = book.hand(key.table, key.hand)
    if hand is None:
        raise _not_open(key, table)
    if (repeated := _repeated(hand, request)) is not None:
        return repeated
    if not hand.stage.is_open:
        raise _closed(key, hand)
    if hand.epoch != key.epoch:
        raise Fault("HAND_NOT_OPEN", f"hand {key.hand} belongs to epoch {hand.epoch}", **_facts(key))
    match request:
        case CutDeck():
            hand, answer = _cut(hand, randomness, request)
        case DealCards():
            hand, answer = _deal(hand, randomness, request)
        case ExchangeCards():
            hand, answer = _exchange(hand, randomness, request)
        case DealLateCard():
            hand, answer = _late(hand, randomness, request)
    book.put_hand(_with_step(hand, request, answer))
    return answer


def _cut(hand: HandRecord, randomness: Randomness, request: CutDeck) -> tuple[HandRecord, Answer]:
    if hand.stage != Stage.OPENED:
        raise Fault("ALREADY_SHUFFLED", f"hand {hand.hand} is shuffled", **_facts(request.key))
    randomness.health.require()
    secret = replace(hand.secret, cut=request.cut, player_seeds=request.player_seeds)
    order = shuffling.shuffled(secret.seed, _context(hand, secret), 0, _FULL_DECK)
    deck = _checked(dealing.open_deck, order)
    randomness.note_shuffle(order)
    shuffle = _commit(randomness, 0, order)
    hand = replace(
        hand,
        stage=Stage.SHUFFLED,
        secret=replace(secret, shuffles=(shuffle,)),
        play=replace(hand.play, deck=deck),
    )
    return hand, Frozen(shuffle.root)


def _deal(hand: HandRecord, randomness: Randomness, request: DealCards) -> tuple[HandRecord, Answer]:
    if hand.stage == Stage.OPENED:
        raise Fault("NOT_SHUFFLED", f"hand {hand.hand} is not shuffled yet", **_facts(request.key))
    if hand.stage == Stage.DEALT:
        raise Fault("ALREADY_DEALT", f"hand {hand.hand} is dealt", **_facts(request.key))
    randomness.health.require()
    deck, dealt = _checked(dealing.deal, _deck(hand), request.seats)
    hand = replace(hand, stage=Stage.DEALT, play=replace(hand.play, deck=deck, dealt=dealt.cards))
    return hand, Dealt(tuple(SeatCards(seat, cards.texts_of(dealt.of(seat))) for seat in request.seats))


def _exchange(hand: HandRecord, randomness: Randomness, request: ExchangeCards) -> tuple[HandRecord, Answer]:
    deck = _dealt_deck(hand, request)
    held = deck.hands.get(request.seat, ())
    if request.seat in deck.discarded:
        raise Fault("ALREADY_DREW", f"seat {request.seat} has drawn", **_facts(request.key))
    if not held:
        raise Fault("INVALID_REQUEST", f"seat {request.seat} holds no live hand", field="seat")
    missing = sum(card not in held for card in request.discards)
    if missing:
        raise Fault("CARD_NOT_HELD", f"seat {request.seat} does not hold {missing} of its discards", field="discards")
    shuffles: list[ShuffleSecret] = []
    deck, dealt = _refused_as_invalid(
        partial(
            dealing.exchange,
            deck,
            request.seat,
            request.discards,
            request.draw_now,
            shuffler=_shuffler(hand, randomness, shuffles),
            folded=request.folded_seats,
            mixed=request.rule is ReshuffleRule.MIXED,
        )
    )
    hand, reshuffle = _after(hand, deck, dealt, shuffles)
    return hand, Exchanged(cards.texts_of(dealt.of(request.seat)), reshuffle)


def _late(hand: HandRecord, randomness: Randomness, request: DealLateCard) -> tuple[HandRecord, Answer]:
    deck = _dealt_deck(hand, request)
    shuffles: list[ShuffleSecret] = []
    deck, dealt = _refused_as_invalid(
        partial(
            dealing.late_card,
            deck,
            request.seat,
            burn=request.burn,
            shuffler=_shuffler(hand, randomness, shuffles),
            folded=request.folded_seats,
            mixed=request.rule is ReshuffleRule.MIXED,
        )
    )
    hand, reshuffle = _after(hand, deck, dealt, shuffles)
    return hand, LateDealt(cards.text_of(dealt.of(request.seat)[0]), bool(dealt.burned), reshuffle)


def _dealt_deck(hand: HandRecord, request: ExchangeCards | DealLateCard) -> dealing.DeckState:
    if hand.stage == Stage.OPENED:
        raise Fault("NOT_SHUFFLED", f"hand {hand.hand} is not shuffled yet", **_facts(request.key))
    if hand.stage == Stage.SHUFFLED:
        raise Fault("NOT_DEALT", f"hand {hand.hand} is not dealt yet", **_facts(request.key))
    deck = _deck(hand)
    unknown = [seat for seat in request.folded_seats if seat not in deck.hands and seat not in deck.folded]
    if unknown:
        raise Fault("INVALID_REQUEST", f"seats {unknown} hold no hand to fold", field="folded_seats")
    if request.seat in request.folded_seats:
        raise Fault("INVALID_REQUEST", f"seat {request.seat} has folded", field="folded_seats")
    return deck


def _shuffler(hand: HandRecord, randomness: Randomness, shuffles: list[ShuffleSecret]) -> dealing.Shuffler:
    """Makes reshuffles from the hand's seed and commits each before any of its cards is dealt."""
    context = _context(hand, hand.secret)

    def shuffle(pool: tuple[int, ...], number: int) -> Sequence[int]:
        randomness.health.require()
        order = shuffling.shuffled(hand.secret.seed, context, number, pool)
        shuffles.append(_commit(randomness, number, order))
        return order

    randomness.health.require()
    _checked(dealing.check, _deck(hand))
    return shuffle


def _after(
    hand: HandRecord, deck: dealing.DeckState, dealt: dealing.Dealing, shuffles: list[ShuffleSecret]
) -> tuple[HandRecord, Reshuffled | None]:
    """The hand after cards were dealt in the draw, and what to tell about a reshuffle on the way."""
    _checked(dealing.check, deck)
    if len(dealt.reshuffles) > 1 or len(shuffles) != len(dealt.reshuffles):
        raise DeckBrokenError(f"one call reshuffled {len(dealt.reshuffles)} times")
    out = dealt.burned + dealt.cards
    hand = replace(hand, play=replace(hand.play, deck=deck, dealt=hand.play.dealt + out))
    if not shuffles:
        return hand, None
    number = dealt.reshuffles[0].number
    before = sum(each.shuffle < number for each in out)
    hand = replace(hand, secret=replace(hand.secret, shuffles=hand.secret.shuffles + tuple(shuffles)))
    return hand, Reshuffled(number, shuffles[0].root, len(shuffles[0].order), before)


def _commit(randomness: Randomness, number: int, order: Sequence[int]) -> ShuffleSecret:
    salts = randomness.salts(len(order))
    return ShuffleSecret(bytes(order), salts, root_of(leaves(number, order, salts)))


def _context(hand: HandRecord, secret: Secret) -> bytes:
    return shuffling.context_of(hand.table, hand.hand, secret.cut, secret.player_seeds)


def _deck(hand: HandRecord) -> dealing.DeckState:
    if hand.play.deck is None:
        raise DeckBrokenError(f"hand {hand.hand} at {hand.table} is shuffled and has no deck")
    return hand.play.deck


def _table_at(book: Book, key: HandKey) -> TableRecord:
    """The table, new where it never had a deck. Raises `Fault` STALE_EPOCH."""
    table = book.table(key.table) or _new_table(key.table)
    if key.epoch < table.epoch:
        raise _stale(key.table, key.epoch, table)
    return table


def _new_table(name: str) -> TableRecord:
    return TableRecord(name, 0, 0, 0, 0, FIRST_CHAIN, b"", b"", 0, 0)


def _repeated(hand: HandRecord, request: HandStep) -> Answer | None:
    """The answer to a step that was taken before. Raises `Fault` STEP_CONFLICT where it asked something else."""
    step = hand.play.steps.get(request.step_id)
    if step is None:
        return None
    if step.digest != request.digest():
        raise _conflict(request.step_id)
    return step.answer


def _with_step(hand: HandRecord, request: HandStep, answer: Answer) -> HandRecord:
    # Every step that is kept moves the hand on, so a hand can keep no more of them than it has stages and seats.
    steps = {**hand.play.steps, request.step_id: Step(request.digest(), answer)}
    return replace(hand, play=replace(hand.play, steps=steps))


def _facts(key: HandKey) -> dict[str, str]:
    return {"table": key.table, "hand": str(key.hand)}


def _stale(name: str, epoch: int, table: TableRecord) -> Fault:
    return Fault("STALE_EPOCH", f"epoch {epoch} of {name} is over, it is at {table.epoch}", epoch=str(table.epoch))


def _conflict(step_id: str) -> Fault:
    return Fault("STEP_CONFLICT", "a step of this id asked something else", step_id=step_id)


def _closed(key: HandKey, hand: HandRecord | None) -> Fault:
    if hand is None:
        return Fault(
            "HAND_CLOSED", f"hand {key.hand} was passed over at {key.table}", **_facts(key), outcome="never_opened"
        )
    outcome = hand.stage.outcome
    return Fault("HAND_CLOSED", f"hand {key.hand} at {key.table} is {outcome}", **_facts(key), outcome=outcome)


def _not_open(key: HandKey, table: TableRecord) -> Fault:
    if key.hand <= table.last_hand:
        return _closed(key, None)
    return Fault("HAND_NOT_OPEN", f"hand {key.hand} at {key.table} has no deck", **_facts(key))


def _refused_as_invalid(
    call: Callable[[], tuple[dealing.DeckState, dealing.Dealing]],
) -> tuple[dealing.DeckState, dealing.Dealing]:
    try:
        return call()
    except dealing.DealingRefused as refusal:
        raise Fault("INVALID_REQUEST", str(refusal)) from None


def _checked(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs what can only be refused if the 52 are not the 52 any more."""
    try:
        return call(*args, **kwargs)
    except dealing.DealingRefused as refusal:
        raise DeckBrokenError(str(refusal)) from None
