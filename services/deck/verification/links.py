"""Hands of one table in one file: every deck follows the one before, and none was dealt twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from services.deck.commitments import FIRST_CHAIN
from services.deck.verification.exported import Hand, Proof
from services.deck.verification.report import Report

_PACK = msgspec.msgpack.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class _Deck:
    """What is kept of a hand until the end of the file."""

    number: int
    chain: str
    previous_chain: str
    commitment: str
    next_commitment: str
    hand: int
    epochs: tuple[int, int]
    sequences: tuple[int, int]
    carries: tuple[int, int]
    digest: int


@dataclass(slots=True)
class Links:
    """Collects decks by table and, at the end, says how they follow each other."""

    _decks: dict[str, dict[int, _Deck]] = field(default_factory=dict)
    # Tables of which a deck was dealt or told in two ways: nothing is said of what follows what.
    _doubled: set[str] = field(default_factory=set)

    def add(self, hand: Hand, proof: Proof, report: Report) -> None:
        """Takes a hand in; the same one again, as somebody else saw it, must tell the same."""
        where = f"deck {proof.deck_number} of {hand.table}"
        if proof.deck_number == 1:
            first = proof.previous_chain == FIRST_CHAIN.hex()
            report.check(first, "chain", "a table's first deck follows no other: the chain before it is 32 zero bytes")
        deck = _deck_of(hand, proof)
        known = self._decks.setdefault(hand.table, {}).setdefault(proof.deck_number, deck)
        same_deck = (known.chain, known.commitment, known.hand) == (deck.chain, deck.commitment, deck.hand)
        fine = report.check(same_deck, "link", f"{where} was dealt twice: two hands of this file have it")
        if not fine or not report.check(known.digest == deck.digest, "link", f"{where} is told twice, and not alike"):
            self._doubled.add(hand.table)

    def end(self, report: Report) -> None:
        """Notes what is wrong between neighbours, what is missing, and what follows without a gap."""
        for table, decks in self._decks.items():
            _check_table(table, [decks[number] for number in sorted(decks)], table not in self._doubled, report)


def _deck_of(hand: Hand, proof: Proof) -> _Deck:
    ends = [event for event in hand.events if event.type in ("hand_settled", "hand_voided")]
    told = ends[0].body.get("next_commitment", "") if ends else ""
    public = (
        [msgspec.to_builtins(each) for each in proof.shuffles],
        [(seat.seat, seat.player, seat.stack_before_minor, seat.stack_after_minor) for seat in hand.seats],
        [(event.sequence, event.epoch, event.type) for event in hand.events],
        list(hand.pots),
        (proof.cut, [msgspec.to_builtins(each) for each in proof.player_seeds], hand.outcome, hand.button),
    )
    first, last = hand.events[0], hand.events[-1]
    return _Deck(
        number=proof.deck_number,
        chain=proof.chain,
        previous_chain=proof.previous_chain,
        commitment=proof.commitment,
        next_commitment=told if isinstance(told, str) else "",
        hand=hand.hand,
        epochs=(first.epoch, last.epoch),
        sequences=(first.sequence, last.sequence),
        carries=(hand.carry_in_minor, hand.carry_out_minor),
        digest=hash(_PACK(public)),
    )


def _check_table(table: str, decks: list[_Deck], is_single: bool, report: Report) -> None:
    runs: list[list[_Deck]] = [[decks[0]]]
    for deck in decks[1:]:
        earlier = runs[-1][-1]
        if deck.number == earlier.number + 1:
            runs[-1].append(deck)
            continue
        _check_order(table, earlier, deck, report)
        missing = f"decks {earlier.number + 1} to {deck.number - 1} of {table} are not in the file."
        report.not_proved.append(missing)
        runs.append([deck])
    for run in runs:
        before = len(report.failed)
        for earlier, deck in pairwise(run):
            _check_order(table, earlier, deck, report)
            _check_link(table, earlier, deck, report)
        if len(run) > 1 and is_single:
            which = "" if len(runs) == 1 else f", {run[0].number} to {run[-1].number},"
            report.conclude(before, f"{len(run)} decks of {table}{which} follow each other without a gap.")


def _check_order(table: str, earlier: _Deck, later: _Deck, report: Report) -> None:
    where = f"deck {later.number} of {table}"
    report.check(earlier.hand < later.hand, "link", f"{where} is of an earlier hand than deck {earlier.number}")
    # Sequences begin anew with each epoch.
    ended, began = (earlier.epochs[1], earlier.sequences[1]), (later.epochs[0], later.sequences[0])
    report.check(ended < began, "link", f"{where} begins before deck {earlier.number} ended, by its events' numbers")


def _check_link(table: str, earlier: _Deck, later: _Deck, report: Report) -> None:
    where = f"deck {later.number} of {table}"
    report.check(later.previous_chain == earlier.chain, "link", f"{where} does not follow the one before")
    if earlier.next_commitment:
        fine = earlier.next_commitment == later.commitment
        report.check(fine, "link", f"{where} has another seed than was committed to at the hand before")
    else:
        report.not_proved.append(f"That the seed of {where} was committed to at the hand before: it tells none.")
    # A carry goes to the next hand, or back to those who paid it.
    fine = later.carries[0] in (earlier.carries[1], 0)
    report.check(fine, "link", f"{where} begins with {later.carries[0]} carried, {earlier.carries[1]} were left")
