"""Two verifiers that share no code agree: honest hands pass both, and whatever is changed in one fails both."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from services.cli.verify import verify_command
from services.deck.values import SeatCards
from services.deck.verification import verify_text
from services.runtime.errors import Fault
from tests.unit.deck.both import assert_both_fail, in_javascript
from tests.unit.deck.exported import TABLE, House, Script, exported, random_script
from tests.unit.deck.javascript import VERIFIER, run_node, verify_in_javascript
from tests.unit.deck.tampering import RESHUFFLED, TAMPERINGS, flipped, other_card

SEED = 20_240_501
# What events tell beside cards, chips and turns; nothing else in the file says it again.
FREE = frozenset({"sitting", "deadline", "hand_name", "next_commitment", "commit_time"})


# The head tells when the hand began and ended.
TIMED = frozenset({"hand_started.commit_time", "hand_ended.commit_time"})


async def test_honest_hands_pass_both_verifiers_for_every_viewer() -> None:
    rng = random.Random(SEED)
    house, views, reshuffles, late = House(SEED), [], 0, 0
    for _ in range(25):
        script = random_script(rng)
        hand = await house.play(script)
        reshuffles += any(event["type"] == "deck_reshuffled" for event in hand.events)
        late += any(event["body"].get("late") for event in hand.events)
        viewers = {0, script.four_card_draw or script.seats[0], script.folds[0] if script.folds else 0}
        views += [await house.export(hand, viewer) for viewer in viewers]
        views.append(await house.export(hand, 0, open_seed=True))
    assert reshuffles >= 3
    assert late > 5
    for view, other in zip(views, in_javascript(views), strict=True):
        mine = verify_text(json.dumps(view))
        assert (mine.failed, other["failed"]) == ([], [])
        assert len(mine.proved) == len(other["proved"])
        assert len(mine.not_proved) == len(other["notProved"])
        if view["proof"]["seed"]:
            assert "Every shuffle and every card of the hand follow from the committed seed." in mine.proved


async def test_a_late_drawer_alone_sees_that_what_was_passed_over_were_its_discards() -> None:
    # Nine seats leave a stub of seven. The fourth drawer has the discards shuffled, the four of the first among them,
    # and leaves six cards, three of them the first drawer's on average.
    script = Script(tuple(range(1, 10)), 9, discards={1: 4, 2: 2, 3: 2, 4: 2}, four_card_draw=1)
    house = House(SEED)
    for _ in range(50):
        hand = await house.play(script)
        public = await house.export(hand, 0)
        if public["proof"]["passed"]:
            break
    drawer = await house.export(hand, 1)
    other = await house.export(hand, 5)
    reports = [verify_text(json.dumps(view)) for view in (public, other, drawer)]
    assert [report.failed for report in reports] == [[], [], []]
    told = [any("passed over" in sentence for sentence in report.not_proved) for report in reports]
    assert told == [True, True, False]
    assert [each["failed"] for each in in_javascript([public, other, drawer])] == [[], [], []]
    # The place is opened to the drawer; with another card in it, both say where.
    (passed,) = drawer["proof"]["passed"][:1]
    drawer["proof"]["places"] = [
        p for p in drawer["proof"]["places"] if (p["shuffle"], p["place"]) != tuple(passed.values())
    ]
    for failed in (verify_text(json.dumps(drawer)).failed, in_javascript([drawer])[0]["failed"]):
        assert any(line.startswith("passed: ") for line in failed)


VOID_BEFORE = ("deck_committed", "cards_dealt", "cards_discarded", "deck_reshuffled", "cards_drawn", "hand_ended")


@pytest.mark.parametrize("stage", VOID_BEFORE)
async def test_a_hand_that_was_void_at_any_stage_passes_for_every_viewer(stage: str) -> None:
    """The deck may be further than the table: what it had done was not told any more."""
    house = House(SEED)
    hand = await house.play(replace(RESHUFFLED, void=True))
    # Before the last of these events, so that reshuffles and draws come before it where there are some.
    kinds = [event["type"] for event in hand.events]
    told = hand.events[: len(kinds) - 1 - kinds[::-1].index(stage)]
    hand.cut_off(told)
    views = [await house.export(hand, viewer) for viewer in (0, 1, 9)]
    views.append(await house.export(hand, 0, open_seed=True))
    # The same file with the void denied is not a possible hand.
    denied = views[0] | {"outcome": "showdown"}
    *others, other_denied = in_javascript([*views, denied])
    assert verify_text(json.dumps(denied)).failed
    assert other_denied["failed"]
    for view, other in zip(views, others, strict=True):
        mine = verify_text(json.dumps(view))
        assert (mine.failed, other["failed"]) == ([], [])
        assert (len(mine.proved), len(mine.not_proved)) == (len(other["proved"]), len(other["notProved"]))


async def test_a_card_dealt_to_two_seats_is_opened_to_each_for_its_own_deal_only() -> None:
    script = Script(tuple(range(1, 10)), 9, discards=dict.fromkeys(range(1, 10), 5))
    house = House(7)
    hand = await house.play(script)
    given = {card: seat for seat in hand.discarded for card in hand.discarded[seat]}
    card, taker = next((card, seat) for seat in hand.drawn for card in hand.drawn[seat] if card in given)
    giver = given[card]
    mine = await house.export(hand, giver)
    theirs = await house.export(hand, taker)
    places = [next(p for p in view["proof"]["places"] if p["card"] == card) for view in (mine, theirs)]
    assert places[0]["shuffle"] == 0
    assert places[1]["shuffle"] > 0
    assert sum(p["card"] == card for p in mine["proof"]["places"]) == 1
    # Without seats the deck opens neither.
    loose = await house.decks.get_fairness_proof(TABLE, hand.hand, seen=[card])
    assert loose.places == ()
    with pytest.raises(Fault, match="never dealt to their seat") as caught:
        await house.decks.get_fairness_proof(TABLE, hand.hand, seen_hands=[_cards(giver + 1, mine)])
    assert not any(card in str(caught.value) for card in hand.dealt[giver])


def _cards(seat: int, view: dict):
    own = next(each for each in view["seats"] if each["dealt"])
    return SeatCards(seat, tuple(own["dealt"]))


# Words that are changed into one another, so that none fails for being unknown.
KINDS = (
    "fold",
    "check",
    "call",
    "bet",
    "raise",
    "ante",
    "small_blind",
    "showdown",
    "uncontested",
    "hand_shown",
    "hand_mucked",
)


def changed(value):
    """Another value of the same shape, or `None` where there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        if not value:
            return None
        if value in KINDS:
            return KINDS[KINDS.index(value) - 1]
        return other_card(value) if len(value) == 2 else flipped(value)
    if isinstance(value, list) and len(value) > 1:
        return [value[1], value[0], *value[2:]]
    return None


def leaves(node, path: tuple = ()) -> Iterator[tuple]:
    """Paths of all that can be changed in a tree of JSON; a list of values is changed as a whole too."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from leaves(value, (*path, name))
        return
    if isinstance(node, list):
        if node and not isinstance(node[0], dict) and len(node) > 1:
            yield path
        for at, value in enumerate(node):
            yield from leaves(value, (*path, at))
        return
    yield path


def put(hand: dict, path: tuple):
    """A copy of the hand with the value at `path` changed, or `None`."""
    copied = copy.deepcopy(hand)
    node = copied
    for step in path[:-1]:
        node = node[step]
    value = changed(node[path[-1]])
    if value is None:
        return None
    node[path[-1]] = value
    return copied


@pytest.fixture(scope="module")
def view() -> dict:
    """One hand with a reshuffle, a late card, a fold and two shown hands, as seat 9 sees it."""
    hand = exported(RESHUFFLED, 9, seed=3)
    assert any(event["type"] == "deck_reshuffled" for event in hand["events"])
    return hand


def test_the_untouched_hand_passes(view: dict) -> None:
    assert verify_text(json.dumps(view)).failed == []
    assert in_javascript([view])[0]["failed"] == []


def test_a_changed_card_salt_event_or_order_fails_and_both_say_where(view: dict) -> None:
    changes = {tampering.name: tampering.change(view) for tampering in TAMPERINGS}
    failures = assert_both_fail({name: changed for name, (changed, _) in changes.items()})
    for name, (_, place) in changes.items():
        for failed in failures[name]:
            assert any(place in line for line in failed), (name, place, failed)


def test_every_change_to_the_proof_fails_and_says_where(view: dict) -> None:
    tampered = {}
    for path in leaves(view["proof"], ("proof",)):
        if path[1] == "seed":
            continue
        hand = put(view, path)
        if hand is not None:
            tampered["/".join(map(str, path))] = hand
    assert len(tampered) > 150
    for name, failures in assert_both_fail(tampered).items():
        if name.startswith("proof/places/"):
            place = view["proof"]["places"][int(name.split("/")[2])]
            if name.split("/")[3] in ("card", "salt", "path"):
                where = f"shuffle {place['shuffle']}, place {place['place']}"
                assert all(any(where in line for line in failed) for failed in failures), name


def test_every_change_to_an_event_fails(view: dict) -> None:
    tampered = {}
    for path in leaves(view["events"], ("events",)):
        event = view["events"][path[1]]
        spoken = ".".join([event["type"], *(str(step) for step in path[2:])])
        # The last one's number can only rise: a gap, which is said and does not fail.
        if (path[-1] in FREE and spoken not in TIMED) or spoken == "hand_settled.sequence":
            continue
        hand = put(view, path)
        if hand is not None:
            tampered[spoken + f" at {event['sequence']}"] = hand
    assert len(tampered) > 400
    assert_both_fail(tampered)


def without(view: dict, at: int, renumbered: bool) -> dict:
    """The hand without one event, with a gap in the numbers or with none."""
    hand = copy.deepcopy(view)
    del hand["events"][at]
    for event in hand["events"][at:] if renumbered else ():
        event["sequence"] -= 1
    return hand


def swapped(view: dict, at: int, renumbered: bool) -> dict:
    """The hand with two neighbours in the other order, with their own numbers or with those of the places."""
    hand = copy.deepcopy(view)
    first, second = hand["events"][at : at + 2]
    hand["events"][at : at + 2] = [second, first]
    if renumbered:
        first["sequence"], second["sequence"] = second["sequence"], first["sequence"]
    return hand


@pytest.mark.parametrize("seats", [(8, 6), ()], ids=["showdown", "uncontested"])
def test_events_that_are_swapped_or_taken_out_are_missed(seats: tuple[int, ...]) -> None:
    view = exported(replace(RESHUFFLED, shown=seats), 9, seed=3)
    tampered = {}
    chosen = {}
    for at, event in enumerate(view["events"]):
        following = view["events"][at + 1] if at + 1 < len(view["events"]) else {"type": "", "body": {}}
        # A player may choose these before the turn comes, which is not told then. It is said, but does not fail.
        is_chosen = following["body"].get("kind") in ("fold", "check", "call") and event["type"] == "turn_started"
        for renumbered in (False, True):
            name = f"{at} {event['type']}, {'renumbered' if renumbered else 'a gap'}"
            if event["type"] == "hand_settled" or is_chosen:
                chosen[f"delete {name}"] = without(view, at, renumbered)
            else:
                tampered[f"delete {name}"] = without(view, at, renumbered)
            if following["type"]:
                tampered[f"swap {name}"] = swapped(view, at, renumbered)
    assert_both_fail(tampered)
    assert len(chosen) > 10
    honest = verify_text(json.dumps(view))
    for (name, hand), other in zip(chosen.items(), in_javascript(list(chosen.values())), strict=True):
        mine = verify_text(json.dumps(hand))
        assert len(honest.not_proved) < len(mine.not_proved) == len(other["notProved"]), name
        assert (mine.failed, other["failed"]) == ([], []), name


def test_every_change_to_the_cards_of_a_seat_fails_and_says_which(view: dict) -> None:
    tampered = {}
    for path in leaves(view["seats"], ("seats",)):
        if path[2] in ("dealt", "drawn", "discarded", "final_cards") and path[-1] != path[2]:
            hand = put(view, path)
            if hand is not None:
                tampered["/".join(map(str, path))] = hand
    for name, failures in assert_both_fail(tampered).items():
        seat = view["seats"][int(name.split("/")[1])]["seat"]
        assert all(any(f"seat {seat}" in line for line in failed) for failed in failures), name


@pytest.mark.parametrize("name", ["table", "hand", "epoch", "button"])
def test_a_hand_that_claims_to_be_another_fails(view: dict, name: str) -> None:
    assert_both_fail({name: put(view, (name,))})


def test_an_auditor_sees_every_change_of_what_went_into_the_shuffle() -> None:
    whole = exported(RESHUFFLED, 0, open_seed=True, seed=3)
    # What was told of the players' seeds is changed as well, so that the order alone gives it away.
    for told in (whole["proof"], next(e["body"] for e in whole["events"] if e["type"] == "deck_committed")):
        told["player_seeds"] = [{"seat": 1, "seed": "00"}]
    tampered = {"player seed": whole}
    for path in (("proof", "seed"), ("proof", "cut")):
        hand = exported(RESHUFFLED, 0, open_seed=True, seed=3)
        hand["proof"][path[1]] = flipped(hand["proof"][path[1]])
        tampered[path[1]] = hand
    for failures in assert_both_fail(tampered).values():
        assert all(any(line.startswith("seed: ") for line in failed) for failed in failures)


async def test_consecutive_hands_are_linked_and_a_left_out_deck_shows() -> None:
    house = House(11)
    script = Script(discards={1: 1, 2: 2, 3: 0})
    views = [await house.export(await house.play(script), 1) for _ in range(4)]
    text = "\n".join(map(json.dumps, views))
    report = verify_text(text)
    assert report.failed == []
    assert "4 decks of tables/oak follow each other without a gap." in report.proved
    without = verify_text("\n".join(map(json.dumps, (views[0], views[2]))))
    assert without.not_proved[-1] == "decks 2 to 2 of tables/oak are not in the file."
    views[1]["proof"]["previous_chain"] = flipped(views[1]["proof"]["previous_chain"])
    assert any(line.startswith("link: ") for line in verify_text("\n".join(map(json.dumps, views))).failed)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"table": 3}', "\x00", "[" * 100_000])
def test_files_that_hold_no_hand_fail_without_a_crash(text: str) -> None:
    assert verify_text(text).failed
    assert "failed" in verify_in_javascript(text)[-1]
    assert not verify_in_javascript(text)[-1].endswith(" 0 failed")


def test_the_command_and_the_script_say_it_in_their_exit_status(view: dict, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(view, indent=1))
    tampered = copy.deepcopy(view)
    tampered["proof"]["places"][0]["card"] = other_card(tampered["proof"]["places"][0]["card"])
    bad.write_text(json.dumps(tampered, indent=1))
    runner = CliRunner()
    assert runner.invoke(verify_command, [str(good)]).exit_code == 0
    refused = runner.invoke(verify_command, [str(bad)])
    assert refused.exit_code == 1
    assert "FAILED      place: shuffle 0, place" in refused.output
    for path, status in ((good, 0), (bad, 1)):
        assert run_node(str(VERIFIER), str(path)).returncode == status


def test_the_javascript_hashes_are_the_standard_ones() -> None:
    script = f"""
    const v = require({json.dumps(str(VERIFIER))});
    const b = (n) => Uint8Array.from({{length: n}}, (_, i) => i & 255);
    const keyed = [[0, 5], [32, 100], [64, 1], [65, 7], [200, 64]];
    console.log(JSON.stringify([0, 3, 55, 56, 63, 64, 65, 119, 120, 1000].map((n) => v.hex(v.sha256(b(n))))));
    console.log(JSON.stringify(keyed.map(([k, m]) => v.hex(v.hmac(b(k), b(m))))));
    """
    octets = bytes(range(256)) * 4
    lines = run_node("-e", script).stdout.splitlines()
    sizes = (0, 3, 55, 56, 63, 64, 65, 119, 120, 1000)
    assert json.loads(lines[0]) == [hashlib.sha256(octets[:size]).hexdigest() for size in sizes]
    keyed = ((0, 5), (32, 100), (64, 1), (65, 7), (200, 64))
    assert json.loads(lines[1]) == [hmac.new(octets[:k], octets[:m], "sha256").hexdigest() for k, m in keyed]
