"""The checks, in the order in which docs/fairness.md names them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import msgspec

from services.deck import commitments, dealing, shuffling
from services.deck.cards import TEXTS, text_of
from services.deck.shuffling import PlayerSeed
from services.deck.verification.bodies import bodies_of
from services.deck.verification.course import check_course
from services.deck.verification.exported import DECODER, WHOLE_MAX, Hand, Place, Proof, Seat
from services.deck.verification.head import check_head
from services.deck.verification.links import Links
from services.deck.verification.report import Report
from services.deck.verification.transcript import At, Transcript, transcript_of

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"[-+]?[0-9][-+0-9.eE]*")
_WHOLE = re.compile(r"-?[0-9]{1,16}")
NUMBERS = {text: number for number, text in enumerate(TEXTS)}


def verify_text(text: str) -> Report:
    """Verifies one hand (a JSON object), or several (one object a line), and the links between them."""
    report = Report()
    lines = [text] if text.lstrip().startswith("{\n") else text.split("\n")
    for found in verify_lines(lines):
        report.add(found)
    return report


def verify_lines(lines: Iterable[str]) -> Iterator[Report]:
    """Verifies exported hands, one JSON object each; empty lines count for nothing.

    Yields a report for each, with its name where it has one, and at the end one about their links. Only what the links
    need is kept of a hand, so a file may be of any length.
    """
    links, number = Links(), 0
    for line in lines:
        if not line.strip():
            continue
        number += 1
        report = Report()
        try:
            _check_numbers(line)
            hand = DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            report.failed.append(f"file: object {number} is not an exported hand: {error}")
        else:
            report.name = hand.name
            _verify_hand(hand, report)
            if hand.proof is not None and hand.events:
                links.add(hand, hand.proof, report)
        yield report
    ending = Report()
    ending.check(number > 0, "file", "no hand in it")
    links.end(ending)
    yield ending


def _check_numbers(line: str) -> None:
    """Raises `msgspec.ValidationError` for a number that is not whole, or that a reader with doubles would round."""
    for number in _NUMBER.findall(_STRING.sub('""', line)):
        if not _WHOLE.fullmatch(number) or abs(int(number)) > WHOLE_MAX:
            raise msgspec.ValidationError(f"{number[:40]} is no whole number of at most 53 bits")


def _verify_hand(hand: Hand, report: Report) -> None:
    name = f"{hand.table}/hands/{hand.hand}"
    if hand.proof is None:
        report.failed.append(f"proof: {name} was exported without one")
        return
    if not report.check(hand.proof.version == shuffling.VERSION, "version", f"{name} has {hand.proof.version}"):
        return
    report.check(not hand.incomplete, "events", "the log of this hand was lost (incomplete): nothing of it is proved")
    _check_chain(hand, hand.proof, report)
    _check_void(hand, hand.proof, report)
    bodies = bodies_of(hand, report)
    if bodies is None:
        return
    transcript = transcript_of(hand, report)
    check_course(hand, bodies, report)
    check_head(hand, bodies, report)
    if transcript is None:
        return
    _check_roots(hand, hand.proof, transcript, report)
    _check_entropy(hand, hand.proof, report)
    opened = _check_places(hand.proof, transcript, report)
    _check_cards(hand, transcript, opened, report)
    if hand.proof.seed:
        _check_seed(hand, hand.proof, transcript, opened, report)
    else:
        report.not_proved.append("That the order came from the committed seed: only an auditor can open it.")


def _check_void(hand: Hand, proof: Proof, report: Report) -> None:
    is_void = hand.outcome == "void"
    report.check(proof.void == is_void, "void", "proof and hand do not agree on it")
    if not is_void:
        return
    report.not_proved.append("Why the hand was void: its number stays in the chain, so that it cannot be hidden.")
    if any(event.type == "hand_ended" for event in hand.events):
        report.not_proved.append(
            "WHY THE HAND WAS VOID AFTER IT WAS DECIDED: only a fault of the house can do that. Show it to an auditor."
        )


def _check_chain(hand: Hand, proof: Proof, report: Report) -> None:
    before = len(report.failed)
    link = commitments.chain_link(
        bytes.fromhex(proof.previous_chain), hand.table, proof.deck_number, hand.hand, bytes.fromhex(proof.commitment)
    )
    report.check(link.hex() == proof.chain, "chain", "it does not follow from table, numbers and commitment")
    started = next((event for event in hand.events if event.type == "hand_started"), None)
    if started is None:
        report.failed.append("chain: the events have no beginning of the hand")
        return
    where = f"event {started.sequence} (hand_started)"
    for name in ("commitment", "chain", "deck_number"):
        report.check(started.body.get(name) == getattr(proof, name), "chain", f"{where}: {name} is not the proof's")
    report.conclude(before, f"Deck {proof.deck_number} is linked to the table's chain with the commitment of its seed.")


def _check_roots(hand: Hand, proof: Proof, transcript: Transcript, report: Report) -> None:
    before = len(report.failed)
    told = {each.shuffle: (each.root, each.cards) for each in proof.shuffles}
    for number in sorted(told.keys() | transcript.roots.keys()):
        if number not in transcript.roots and hand.outcome == "void":
            report.not_proved.append(f"Shuffle {number} was made, and the hand was void before it was announced.")
            continue
        fine = told.get(number) == transcript.roots.get(number)
        report.check(fine, "root", f"shuffle {number} of the proof is not the one that was announced")
    if transcript.roots:
        count = len(transcript.roots)
        report.conclude(before, f"{count} committed shuffles are those announced before their first card.")


def _check_entropy(hand: Hand, proof: Proof, report: Report) -> None:
    """What players gave to the shuffle is what was told with the root."""
    before = len(report.failed)
    committed = next((event for event in hand.events if event.type == "deck_committed"), None)
    if committed is None and hand.outcome == "void":
        return
    told = committed.body if committed is not None else {}
    where = f"event {committed.sequence} (deck_committed)" if committed is not None else "the events"
    report.check(told.get("cut", "") == proof.cut, "entropy", f"{where}: the cut is not the proof's")
    seeds = [{"seat": each.seat, "seed": each.seed} for each in proof.player_seeds]
    fine = told.get("player_seeds", []) == seeds
    report.check(fine, "entropy", f"{where}: the players' seeds are not the proof's")
    seats = [each.seat for each in proof.player_seeds]
    report.check(seats == sorted(set(seats)), "entropy", "the players' seeds do not ascend by seat")
    if committed is not None:
        given = f"the seeds of seats {', '.join(map(str, seats))}" if seats else "no players' seeds"
        report.conclude(
            before, f"{'A cut' if proof.cut else 'No cut'} and {given} were told with the root, before the first card."
        )


def _check_places(proof: Proof, transcript: Transcript, report: Report) -> dict[At, str]:
    """The opened places that lead to their root."""
    before = len(report.failed)
    shuffles = {each.shuffle: each for each in proof.shuffles}
    opened: dict[At, str] = {}
    for each in proof.places:
        at = (each.shuffle, each.place)
        where = f"shuffle {each.shuffle}, place {each.place}"
        shuffle = shuffles.get(each.shuffle)
        if shuffle is None or each.place >= shuffle.cards:
            report.failed.append(f"place: {where} does not exist")
            continue
        report.check(at not in opened, "place", f"{where} is opened twice")
        fine = _root_of(each, shuffle.cards) == shuffle.root
        report.check(fine, "place", f"{where}: card, salt and path do not lead to the root")
        known = bool(proof.seed) or at in transcript.due or at in transcript.passed
        report.check(known, "place", f"{where} was dealt to nobody, and is opened")
        opened[at] = each.card
    for number in shuffles:
        cards = [card for (shuffle, _), card in opened.items() if shuffle == number]
        report.check(len(set(cards)) == len(cards), "place", f"shuffle {number} has a card twice")
    if opened:
        report.conclude(before, f"{len(opened)} opened places are in the committed orders.")
    return opened


def _root_of(place: Place, size: int) -> str:
    leaf = commitments.leaf(place.shuffle, place.place, NUMBERS[place.card], bytes.fromhex(place.salt))
    root = commitments.root_from(leaf, place.place, size, [bytes.fromhex(each) for each in place.path])
    return "" if root is None else root.hex()


def _check_cards(hand: Hand, transcript: Transcript, opened: dict[At, str], report: Report) -> None:
    """Every card that the viewer saw is the one due; no place is opened for a card that they did not see."""
    before = len(report.failed)
    seen = 0
    explained: set[At] = set()
    for seat in hand.seats:
        stream = transcript.stream.get(seat.seat, [])
        ordered = seat.dealt + seat.drawn
        report.check(not set(seat.drawn) & set(seat.discarded), "card", f"seat {seat.seat} got a discard back")
        _check_own_events(hand, seat, report)
        if seat.dealt:
            report.check(
                len(ordered) == len(stream), "card", f"seat {seat.seat}: {len(ordered)} cards, {len(stream)} due"
            )
        for at, card in zip(stream, ordered, strict=False):
            _check_due(seat.seat, at, card, opened, report)
            explained.add(at)
        for card in seat.final_cards:
            found = next((at for at in reversed(stream) if opened.get(at) == card), None)
            where = f"seat {seat.seat}: no opened place is due to it for card {card}"
            report.check(found is not None, "card", where)
            explained |= {found} if found is not None else set()
        seen += len(set(ordered) | set(seat.final_cards))
    _check_passed(hand, transcript, opened, report, explained)
    if not (hand.proof and hand.proof.seed):
        for shuffle, place in sorted(opened.keys() - explained):
            where = f"shuffle {shuffle}, place {place} is opened for a card that the file does not show"
            report.failed.append(f"place: {where}")
        hidden = sum(at not in opened for at in transcript.due)
        if hidden:
            report.not_proved.append(f"{hidden} cards that were dealt and that this viewer did not see.")
    report.conclude(before, f"All {seen} cards that this viewer saw are the ones that were due.")


def _check_due(seat: int, at: At, card: str, opened: dict[At, str], report: Report) -> None:
    where = f"seat {seat}, shuffle {at[0]}, place {at[1]}"
    if at not in opened:
        report.failed.append(f"card: {where} was seen and is not opened")
        return
    report.check(opened[at] == card, "card", f"{where} holds {opened[at]}, the file says {card}")


def _check_own_events(hand: Hand, seat: Seat, report: Report) -> None:
    """What the events show of a seat's cards must be what stands with the seat."""
    drawn: list[str] = []
    for event in hand.events:
        body = event.body
        if event.type == "hand_shown" and body.get("seat") == seat.seat:
            fine = list(body["cards"]) == list(seat.final_cards)
            report.check(fine, "card", f"event {event.sequence} shows other cards than seat {seat.seat} has")
        if event.type == "cards_discarded" and body.get("seat") == seat.seat and body.get("your_discards"):
            fine = list(body["your_discards"]) == list(seat.discarded) and body.get("count") == len(seat.discarded)
            report.check(fine, "card", f"event {event.sequence} has other discards than seat {seat.seat}")
        if event.type == "cards_drawn" and body.get("seat") == seat.seat:
            drawn += body.get("your_cards", [])
        if event.type == "cards_dealt" and seat.seat == hand.your_seat:
            fine = list(body.get("your_cards", [])) == list(seat.dealt)
            report.check(fine, "card", f"event {event.sequence} deals other cards than seat {seat.seat} has")
    if drawn:
        report.check(drawn == list(seat.drawn), "card", f"the events draw other cards than seat {seat.seat} has")
    if seat.dealt and seat.final_cards:
        final = sorted((set(seat.dealt) - set(seat.discarded)) | set(seat.drawn))
        report.check(final == sorted(seat.final_cards), "card", f"seat {seat.seat} ends with other cards than it drew")


def _check_passed(
    hand: Hand, transcript: Transcript, opened: dict[At, str], report: Report, explained: set[At]
) -> None:
    """A place that was passed over held a discard of the late drawer, who alone can see that."""
    late = next((draw.seat for draw in transcript.draws if draw.late), 0)
    own = next((seat.discarded for seat in hand.seats if seat.seat == late), ())
    unknown = 0
    for at in transcript.passed:
        if at in opened:
            where = f"shuffle {at[0]}, place {at[1]} was passed over and is no discard of seat {late}"
            report.check(opened[at] in own, "passed", where)
            explained.add(at)
        else:
            unknown += 1
            where = f"shuffle {at[0]}, place {at[1]} is passed over and not opened to its drawer"
            report.check(not own, "passed", where)
    if unknown:
        report.not_proved.append(
            f"That {unknown} places passed over held discards of seat {late}: it alone can see it."
        )


def _check_seed(hand: Hand, proof: Proof, transcript: Transcript, opened: dict[At, str], report: Report) -> None:
    """For auditors: every order follows from the committed seed, and every deal from the orders."""
    before = len(report.failed)
    seed = bytes.fromhex(proof.seed)
    report.check(hashlib.sha256(seed).hexdigest() == proof.commitment, "seed", "it is not the one committed to")
    report.check(len(opened) == sum(each.cards for each in proof.shuffles), "seed", "not every place is opened")
    player_seeds = [PlayerSeed(each.seat, bytes.fromhex(each.seed)) for each in proof.player_seeds]
    context = shuffling.context_of(hand.table, hand.hand, bytes.fromhex(proof.cut), player_seeds)
    for each in proof.shuffles:
        order = [opened.get((each.shuffle, place), "") for place in range(each.cards)]
        pool = sorted(NUMBERS[card] for card in order if card)
        made = [text_of(card) for card in shuffling.shuffled(seed, context, each.shuffle, pool)]
        report.check(made == order, "seed", f"shuffle {each.shuffle} is not the order that the seed makes")
    _replay(hand, transcript, seed, context, report)
    report.conclude(before, "Every shuffle and every card of the hand follow from the committed seed.")


def _replay(hand: Hand, transcript: Transcript, seed: bytes, context: bytes, report: Report) -> None:
    """Deals the whole hand again and compares where each card came from."""
    if not transcript.deal_order:
        return

    def shuffle(pool: tuple[int, ...], number: int) -> tuple[int, ...]:
        return shuffling.shuffled(seed, context, number, pool)

    discards = {seat.seat: tuple(NUMBERS[card] for card in seat.discarded) for seat in hand.seats}
    mixed = hand.rules.reshuffle == "mixed"
    order = shuffle(tuple(range(dealing.DECK_SIZE)), 0)
    try:
        deck, dealt = dealing.deal(dealing.open_deck(order), transcript.deal_order)
        due = {(each.shuffle, each.place): each.seat for each in dealt.cards}
        for draw, folded in zip(transcript.draws, transcript.folded_before, strict=True):
            if draw.late:
                deck, dealt = dealing.late_card(
                    deck, draw.seat, burn=draw.burns > 0, shuffler=shuffle, folded=folded, mixed=mixed
                )
            else:
                deck, dealt = dealing.exchange(
                    deck, draw.seat, discards[draw.seat], draw.count, shuffler=shuffle, folded=folded, mixed=mixed
                )
            due |= {(each.shuffle, each.place): each.seat for each in dealt.burned + dealt.cards}
    except dealing.DealingRefused as refusal:
        report.failed.append(f"seed: the hand cannot be dealt again: {refusal}")
        return
    report.check(due == transcript.due, "seed", "the hand dealt again gives other places than its events")
