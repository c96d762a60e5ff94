"""`fivedraw replay FILE`: drive the engine with hands that were really played and compare pot and winners.

A file holds one hand a line, as JSON: facts only, amounts in cents. Cards that nobody saw are placed so that those who
won win; everything else (turns, legality, amounts, showing order) has to agree with what was recorded.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from services.cli.dealt_hand import DealtHand
from services.rules.cards import parse_cards
from services.rules.commands import Act, Discard
from services.rules.events import Acted, ForcedBetPosted
from services.rules.hand import start_hand
from services.rules.options import Value
from services.rules.ranking import rank
from services.rules.refusals import CommandInvalid, Refusal
from services.rules.rulebook import Rulebook, RulebookUnknown, load_rulebook
from services.rules.state import HandState

_BETTING = {"fixed": "fixed_limit", "pot": "pot_limit", "no": "no_limit"}
_FACTS = ("id", "network", "limit", "small_blind", "big_blind", "small_bet", "big_bet", "button", "stacks", "posts")
_COURSE = ("first_round", "draws", "second_round", "dealt", "final", "shown", "mucked", "pot", "rake", "collected")
_KEYS = frozenset((*_FACTS, *_COURSE))
_PLACEMENTS_TRIED = 1000


class RecordInvalid(ValueError):
    """A line that is no record of a hand; the text says why."""


Cards = tuple[int, ...]


class _Placement:
    """Cards for every seat that agree with the record: dealt hands, what each discards and what it draws."""

    def __init__(self, record: Mapping[str, Any], seats: tuple[int, ...], chance: random.Random) -> None:
        self.dealt: dict[int, Cards] = {}
        self.discards: dict[int, Cards] = {}
        self.drawn: dict[int, Cards] = {}
        known = {
            key: {int(seat): parse_cards(cards) for seat, cards in record[key].items()} for key in ("dealt", "final")
        }
        counts = {draw["seat"]: draw for draw in record["draws"]}
        used = {card for table in known.values() for cards in table.values() for card in cards}
        free = [card for card in range(52) if card not in used]
        chance.shuffle(free)
        for seat in seats:
            count = counts.get(seat, {}).get("count", 0)
            dealt, final = known["dealt"].get(seat), known["final"].get(seat)
            if dealt and final:
                thrown = tuple(card for card in dealt if card not in final)
                drawn = tuple(card for card in final if card not in dealt)
            elif final:
                thrown, drawn = tuple(free.pop() for _ in range(count)), final[5 - count :]
                dealt = final[: 5 - count] + thrown
            else:
                dealt = dealt or tuple(free.pop() for _ in range(5))
                named = parse_cards(counts.get(seat, {}).get("discarded", ()))
                thrown = named or dealt[:count]
                drawn = tuple(free.pop() for _ in range(count))
            if len(thrown) != count:
                raise RecordInvalid(f"seat {seat} drew {count} cards, but its hands differ by {len(thrown)}")
            self.dealt[seat], self.discards[seat], self.drawn[seat] = dealt, thrown, drawn

    def final(self, seat: int) -> Cards:
        """The hand after the draw."""
        return tuple(card for card in self.dealt[seat] if card not in self.discards[seat]) + self.drawn[seat]

    def order(self, seats: tuple[int, ...], drawers: list[int]) -> Cards:
        """The deck that deals these cards."""
        listed = [self.dealt[seat][turn] for turn in range(5) for seat in seats]
        listed += [card for seat in drawers for card in self.drawn[seat]]
        return (*listed, *(card for card in range(52) if card not in listed))


def replay_hand(record: Mapping[str, Any], rulebook: Rulebook) -> list[str]:
    """What differs between a recorded hand and the engine's; nothing if they agree. Raises `RecordInvalid`."""
    unknown = sorted(record.keys() - _KEYS)
    if unknown:
        raise RecordInvalid(f"unknown keys {', '.join(unknown)}")
    try:
        state = _start(record, rulebook)
    except KeyError as error:
        raise RecordInvalid(f"{error} is missing or unknown") from error
    except ValueError as error:
        raise RecordInvalid(str(error)) from error
    placement = _place(record, state.seats)
    drawers = [draw["seat"] for draw in record["draws"]]
    hand = DealtHand(state, placement.order(state.seats, drawers), _no_reshuffle)
    try:
        return list(_play(hand, record, placement))
    except (Refusal, CommandInvalid) as error:
        reason = error.message() if isinstance(error, Refusal) else str(error)
        return [f"refused in {hand.state.stage}: {reason}"]


def _start(record: Mapping[str, Any], rulebook: Rulebook) -> HandState:
    stacks = {int(seat): chips for seat, chips in record["stacks"].items()}
    options: dict[str, Value] = {
        "seats": max(rulebook.seats, len(stacks)),
        "betting": _BETTING[record["limit"]],
        "small_blind": record["small_blind"],
        "big_blind": record["big_blind"],
        "chip_unit": 1,
        "rake_basis_points": 0,
    }
    if record["limit"] == "fixed":
        options |= {"small_bet": record["small_bet"], "big_bet": record["big_bet"]}
    book = rulebook.with_options(options)
    mucks = {seat: seat in record["mucked"] for seat in stacks}
    plain = start_hand(book, stacks, record["button"], auto_muck=mucks)
    blind = plain.seats[1] if len(stacks) > 2 else plain.seats[0]
    posts = {
        post["seat"]: post["amount"]
        for post in record["posts"]
        if post["kind"] == "big_blind" and post["seat"] != blind
    }
    return start_hand(book, stacks, record["button"], posts=posts, auto_muck=mucks)


def _place(record: Mapping[str, Any], seats: tuple[int, ...]) -> _Placement:
    """The first placement under which the recorded winners hold the best of the hands that reach the showdown."""
    folded = {
        act["seat"] for name in ("first_round", "second_round") for act in record[name] if act["action"] == "fold"
    }
    contenders = [seat for seat in seats if seat not in folded]
    winners = {int(seat) for seat in record["collected"]}
    chance = random.Random(record["id"])
    for _ in range(_PLACEMENTS_TRIED):
        placement = _Placement(record, seats, chance)
        best = max(contenders, key=lambda seat: rank(placement.final(seat)))
        if len(contenders) == 1 or best in winners:
            return placement
    raise RecordInvalid("no placement of the unknown cards lets the recorded winners win")


def _no_reshuffle(_cards: Cards, number: int) -> Cards:
    raise RecordInvalid(f"reshuffle {number}: the record does not say what came")


def _play(hand: DealtHand, record: Mapping[str, Any], placement: _Placement) -> Iterator[str]:
    hand.begin()
    posted = {(event.seat, event.amount) for event in hand.events if isinstance(event, ForcedBetPosted)}
    recorded = {(post["seat"], post["amount"]) for post in record["posts"]}
    if posted != recorded:
        yield f"posts {sorted(recorded)} recorded, {sorted(posted)} found"
    for action in record["first_round"]:
        yield from _take(hand, action)
    for draw in record["draws"]:
        hand.do(Discard(draw["seat"], placement.discards[draw["seat"]]))
    for action in record["second_round"]:
        yield from _take(hand, action)
    yield from _compare_end(hand.state, record)


def _take(hand: DealtHand, action: Mapping[str, Any]) -> Iterator[str]:
    kind = action["action"]
    to = action.get("to", action.get("amount", 0) if kind == "bet" else 0)
    acted = hand.do(Act(action["seat"], kind, to))[0]
    if not isinstance(acted, Acted):
        yield f"{kind} of seat {action['seat']} is not the next event"
        return
    if kind in ("call", "bet") and acted.added != action["amount"]:
        yield f"{kind} of seat {acted.seat}: {action['amount']} recorded, {acted.added} found"
    if bool(action.get("all_in")) != acted.all_in:
        yield f"{kind} of seat {acted.seat}: all-in {bool(action.get('all_in'))} recorded, {acted.all_in} found"


def _compare_end(state: HandState, record: Mapping[str, Any]) -> Iterator[str]:
    if state.outcome is None:
        yield f"the hand is not over, it is in {state.stage}"
        return
    won: dict[int, int] = {}
    for pot in state.pots:
        for seat, chips in pot.winners.items():
            won[seat] = won.get(seat, 0) + chips
    amount = sum(pot.amount for pot in state.pots)
    collected = {int(seat): chips for seat, chips in record["collected"].items()}
    if amount != record["pot"]:
        yield f"pot {record['pot']} recorded, {amount} found"
    # The room's rake follows no flat rate, so each winner may have got less than the engine's share, by it in sum.
    short = {seat: won.get(seat, 0) - chips for seat, chips in collected.items()}
    if won.keys() != collected.keys() or sum(short.values()) != record["rake"] or min(short.values()) < 0:
        yield f"collected {collected} after a rake of {record['rake']} recorded, {won} before rake found"
    shown = [state.seats[position] for position in state.shown]
    mucked = sorted(state.seats[position] for position in state.mucked)
    if shown != record["shown"]:
        yield f"shown {record['shown']} recorded, {shown} found"
    if mucked != sorted(record["mucked"]):
        yield f"mucked {record['mucked']} recorded, {mucked} found"


def replay_file(path: Path, rulebook: Rulebook, limit: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Each hand of a file with what differs; with `limit` only the hands of that limit."""
    # Bytes that are no text show as such in the line's own fault.
    with path.open(encoding="utf-8", errors="backslashreplace") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if limit is None or record["limit"] == limit:
                    yield str(record["id"]), replay_hand(record, rulebook)
            except KeyError as error:
                yield f"line {number}", [f"not a record: {error} is missing or unknown"]
            except (AttributeError, IndexError, TypeError) as error:
                yield f"line {number}", [f"not a record: a value has the wrong shape ({error})"]
            except (ValueError, RecursionError) as error:
                yield f"line {number}", [f"not a record: {error}"]


@click.command("replay")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rulebook", "name", default="house", show_default=True, help="The rulebook whose options to use.")
@click.option("--limit", type=click.Choice(sorted(_BETTING)), help="Only the hands of this limit.")
def replay_command(file: Path, name: str, limit: str | None) -> None:
    """Replay the recorded hands in FILE; name what differs. The exit status is 0 if all agree."""
    try:
        rulebook = load_rulebook(name)
    except RulebookUnknown as error:
        raise click.BadParameter(str(error), param_hint="--rulebook") from error
    agreed = hands = 0
    for title, differences in replay_file(file, rulebook, limit):
        hands += 1
        agreed += not differences
        for difference in differences:
            click.echo(f"{title}: {difference}")
    click.echo(f"{agreed} of {hands} agree")
    # A file without a hand proves nothing.
    sys.exit(agreed < hands or not hands)


if __name__ == "__main__":
    replay_command()
