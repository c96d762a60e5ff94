"""A file must be whole and agree with itself: whatever is taken out, told twice or told otherwise shows in both."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from services.cli import verify
from services.deck.cards import TEXTS
from services.deck.commitments import chain_link
from services.deck.verification import verify_text
from services.deck.verification.bodies import BESIDE
from services.deck.verification.ranking import worth_of
from services.rules.cards import parse_cards
from services.rules.ranking import rank
from tests.property.deck.test_deck_verifiers import leaves, put, without
from tests.unit.deck.both import assert_both_fail, assert_both_pass, texts_in_javascript
from tests.unit.deck.exported import TABLE, House, Script, exported
from tests.unit.deck.javascript import VERIFIER, run_node, verify_in_javascript
from tests.unit.deck.tampering import RESHUFFLED

HANDS = Path(__file__).parents[2] / "unit" / "deck" / "data" / "hands.jsonl"
SHOWDOWN = replace(RESHUFFLED, shown=(6, 8, 9))

# Of the head, what no event says again.
FREE_HEAD = frozenset({"your_seat"})


@pytest.fixture(scope="module")
def view() -> dict:
    """A showdown after a reshuffled draw with a late card, as seat 9 sees it."""
    return exported(SHOWDOWN, 9, seed=3)


def at(hand: dict, kind: str) -> int:
    return next(n for n, event in enumerate(hand["events"]) if event["type"] == kind)


def body(hand: dict, kind: str) -> dict:
    return hand["events"][at(hand, kind)]["body"]


def rechained(hand: dict, previous: bytes, number: int) -> dict:
    """The hand as a deck of another place in the chain, with all links made anew."""
    changed = copy.deepcopy(hand)
    proof = changed["proof"]
    chain = chain_link(previous, TABLE, number, hand["hand"], bytes.fromhex(proof["commitment"])).hex()
    proof |= {"previous_chain": previous.hex(), "deck_number": number, "chain": chain}
    body(changed, "hand_started").update(deck_number=number, chain=chain)
    return changed


def other_winner(hand: dict) -> dict:
    """The pot goes to a seat that mucked, for ten times the chips, in the awards and in the head."""
    pot = body(hand, "pot_awarded")["pot"]
    pot |= {"winners": {"3": 10 * pot["amount_minor"]}, "amount_minor": 10 * pot["amount_minor"]}
    hand["pots"] = [pot]
    return hand


def test_without_its_end_a_hand_fails_and_nothing_behind_it_can_be_changed(view: dict) -> None:
    ended = at(view, "hand_ended")
    no_award = without(without(view, ended, renumbered=True), at(view, "pot_awarded"), renumbered=True)
    no_beginning = without(view, 0, renumbered=True)
    tampered = {
        "no end": without(view, ended, renumbered=True),
        "no end, another winner": other_winner(without(view, ended, renumbered=True)),
        "no end, no award": no_award | {"pots": []},
        "no end, not settled": without(without(view, ended + 1, renumbered=True), ended, renumbered=True),
        "no beginning": no_beginning,
        "nothing": view | {"events": []},
    }
    for name, failures in assert_both_fail(tampered).items():
        checks = {line.partition(":")[0] for failed in failures for line in failed}
        assert checks & {"events", "chain", "chips"}, name


def test_a_played_hand_cannot_be_told_as_void(view: dict) -> None:
    void = copy.deepcopy(view) | {"outcome": "void", "pots": []}
    void["proof"]["void"] = True
    voided = {"reason": "", "by": "house", "stacks_minor": {}, "carry_minor": 0, "next_commitment": ""}
    settled_and_void = copy.deepcopy(void)
    last = settled_and_void["events"][-1]
    settled_and_void["events"].append(last | {"sequence": last["sequence"] + 1, "type": "hand_voided", "body": voided})
    short = copy.deepcopy(void)
    short["events"] = short["events"][: at(view, "pot_awarded")]
    undone = copy.deepcopy(view)
    undone["events"][-1] |= {"type": "hand_voided", "body": voided}
    tampered = {"settled": void, "settled and void": settled_and_void, "cut short": short, "undone": undone}
    for failures in assert_both_fail(tampered).values():
        assert all(any(line.startswith(("void: ", "chips: ")) for line in failed) for failed in failures)


async def test_a_decided_hand_that_was_void_after_all_passes_and_it_is_said_aloud() -> None:
    """As when the ledger refuses a payout, or when a table loses its state and its new owner undoes the hand."""
    house = House(5)
    hand = await house.play(replace(SHOWDOWN, void=True))
    ended = next(n for n, event in enumerate(hand.events) if event["type"] == "hand_ended")
    hand.cut_off(hand.events[: ended + 1])
    same_epoch = await house.export(hand, 9)
    same_epoch["void_reason"] = "a test"
    for seat in same_epoch["seats"]:
        seat["stack_after_minor"] = seat["stack_before_minor"]
    same_epoch["end_time"] = same_epoch["events"][-1]["commit_time"]
    later = copy.deepcopy(same_epoch)
    later["events"][-1] |= {"epoch": 2, "sequence": 2}
    told = assert_both_pass(json.dumps(same_epoch), json.dumps(later))
    assert all(any("VOID AFTER IT WAS DECIDED" in sentence for sentence in each) for each in told)
    assert "That nothing is missing between epochs 1 and 2." in told[1]
    # In a hand that was paid the epoch cannot rise.
    assert_both_fail({"epoch": later | {"outcome": "showdown"}})


def test_every_change_to_the_head_fails(view: dict) -> None:
    tampered = {}
    for path in leaves({name: value for name, value in view.items() if name not in ("events", "proof")}):
        hand = put(view, path)
        if hand is not None and path[0] not in FREE_HEAD:
            tampered["/".join(map(str, path))] = hand
    assert len(tampered) > 80
    named = {"seats/0/player", "seats/0/stack_before_minor", "seats/0/stack_after_minor", "options/max_draw"}
    assert named | {"rake_minor", "carry_in_minor", "carry_out_minor", "outcome", "start_time"} <= tampered.keys()
    assert_both_fail(tampered)


def test_what_the_beginning_says_against_the_head_fails(view: dict) -> None:
    tampered = {}
    for name, change in (
        ("stack", lambda told: told["seats"][0].update(stack_minor=1)),
        ("player", lambda told: told["seats"][0].update(player="players/mallory")),
        ("seats", lambda told: told["seats"].pop()),
        ("carry", lambda told: told.update(carry_minor=999)),
        ("options", lambda told: told["options"].update(reshuffle="mixed")),
        ("button", lambda told: told.update(button=6)),
    ):
        hand = tampered[name] = copy.deepcopy(view)
        change(body(hand, "hand_started"))
    assert_both_fail(tampered)


def test_amounts_that_are_changed_alike_in_head_and_events_fail(view: dict) -> None:
    def pot(change: dict, **ended: int) -> dict:
        hand = copy.deepcopy(view)
        body(hand, "pot_awarded")["pot"].update(change)
        hand["pots"] = [body(hand, "pot_awarded")["pot"]]
        body(hand, "hand_ended").update(ended)
        return hand | {name: value for name, value in ended.items() if name == "rake_minor"}

    amount = view["pots"][0]["amount_minor"]
    stage = copy.deepcopy(view)
    body(stage, "stage_started")["pot_minor"] += 1
    owed = copy.deepcopy(view)
    owing = next(event for event in owed["events"] if event["body"].get("turn") and event["type"] == "turn_started")
    owing["body"]["turn"]["to_call_minor"] += 5
    tampered = {
        "pot": pot({"amount_minor": amount + 1}),
        "rake": pot({"amount_minor": amount + 5, "rake_minor": 5}, rake_minor=5),
        "rake out of the pot": pot({"rake_minor": 5, "winners": {"6": amount - 5}}, rake_minor=5),
        "two winners": pot({"winners": {"6": amount - 1, "8": 1}}),
        "stage": stage,
        "owed": owed,
    }
    for name, failures in assert_both_fail(tampered).items():
        assert all(any(line.startswith(("chips: ", "winner: ")) for line in failed) for failed in failures), name


async def test_a_deck_that_was_dealt_twice_fails_and_nothing_follows_without_a_gap() -> None:
    house = House(11)
    one, two, three = [await house.export(await house.play(Script(discards={1: 1})), 1) for _ in range(3)]
    doubled = rechained(three, bytes.fromhex(two["proof"]["previous_chain"]), 2)
    files = {
        "dealt twice": "\n".join(map(json.dumps, (one, two, doubled))),
        "told twice": "\n".join(map(json.dumps, (one, two, put(two, ("seats", 0, "stack_after_minor"))))),
        "out of order": "\n".join(map(json.dumps, (one, two | {"hand": 1}))),
    }
    for name, failures in assert_both_fail(files).items():
        assert all(any(line.startswith("link: deck 2 of ") for line in failed) for failed in failures), name
        assert not any("without a gap" in sentence for sentence in verify_text(files[name]).proved), name
    # The same hand as another player sees it is no second one, and each run without a gap is said by itself.
    again = await house.play(Script(discards={1: 1}))
    same = [await house.export(again, viewer) for viewer in (1, 2)]
    assert_both_pass("\n".join(map(json.dumps, (one, two, three, *same))))
    gapped = verify_text("\n".join(map(json.dumps, (one, two, *same))))
    assert "2 decks of tables/oak, 1 to 2, follow each other without a gap." in gapped.proved
    assert gapped.not_proved[-1] == "decks 3 to 3 of tables/oak are not in the file."


def test_the_first_deck_follows_no_other(view: dict) -> None:
    changed = rechained(view, hashlib.sha256(b"another deck").digest(), 1)
    for failed in assert_both_fail({"first": changed})["first"]:
        assert failed == ["chain: a table's first deck follows no other: the chain before it is 32 zero bytes"]


def test_both_refuse_what_is_not_the_exported_json(view: dict) -> None:
    text = json.dumps(view)
    tampered: dict[str, dict | str] = {
        "fraction": text.replace('"hand": 1,', '"hand": 1.0,', 1),
        "exponent": text.replace('"hand": 1,', '"hand": 1e0,', 1),
        "54 bits": text.replace('"stack_minor": 1000', f'"stack_minor": {2**53}', 1),
        "no options": view | {"options": None},
        "an option is missing": view | {"options": {**view["options"], "max_draw": None}},
        "a seat is true": text.replace('"seat": 1,', '"seat": true,'),
        "a kind that is not known": text.replace('"turn_started"', '"turn_begun"'),
        "no pots": {name: value for name, value in view.items() if name != "pots"},
        "incomplete": view | {"incomplete": True},
    }
    for at_event, event in enumerate(view["events"]):
        if event["type"] == "cards_drawn":
            changed = tampered[f"late {at_event}"] = copy.deepcopy(view)
            changed["events"][at_event]["body"]["late"] = not event["body"]["late"]
    assert len(tampered) > 14
    assert_both_fail(tampered)


def test_what_was_chosen_before_and_who_has_left_have_no_turn(view: dict) -> None:
    chosen, left = copy.deepcopy(view), copy.deepcopy(view)
    checked = next(n for n, event in enumerate(view["events"]) if event["body"].get("kind") == "check")
    del chosen["events"][checked - 1]
    # Nobody plays for the seat: its clock checks at turn 0, so that all turns after it are numbered one less.
    absent = left["events"][checked]["body"]
    absent |= {"by_clock": True, "turn": 0}
    for event in left["events"][checked + 1 :]:
        turn = event["body"].get("turn", 0)
        if isinstance(turn, dict):
            turn["turn"] -= 1
        elif turn:
            event["body"]["turn"] = turn - 1
    del left["events"][checked - 1]
    next(seat for seat in left["seats"] if seat["seat"] == absent["seat"])["timed_out"] = True
    told = assert_both_pass(json.dumps(chosen), json.dumps(left))
    assert any("the turns of 1 actions" in sentence for sentence in told[0])
    assert not any("the turns of" in sentence for sentence in told[1])
    assert all(any("WHAT 1 MISSING EVENTS SAID" in sentence for sentence in each) for each in told)


async def test_a_file_of_many_hands_is_read_line_by_line_and_may_have_any_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(11)
    views = [json.dumps(await house.export(await house.play(Script(discards={1: 1})), 1)) for _ in range(3)]
    path = tmp_path / "hands.jsonl"
    path.write_text("\n".join(views))
    monkeypatch.setattr(verify, "HAND_CHARACTERS_MAX", max(map(len, views)) + 1)
    assert path.stat().st_size > 2 * verify.HAND_CHARACTERS_MAX
    told = CliRunner().invoke(verify.verify_command, [str(path)])
    assert told.exit_code == 0, told.output
    assert "3 decks of tables/oak follow each other without a gap." in told.output
    assert told.output.splitlines() == verify_in_javascript(path.read_text())
    assert [line for line in told.output.splitlines() if re.fullmatch(r"tables/oak/hands/\d:", line)] != []
    monkeypatch.setattr(verify, "HAND_CHARACTERS_MAX", min(map(len, views)) - 1)
    indented = tmp_path / "hand.json"
    indented.write_text(json.dumps(json.loads(views[0]), indent=1))
    for file in (path, indented):
        refused = CliRunner().invoke(verify.verify_command, [str(file)])
        assert (refused.exit_code, "more than" in refused.output) == (1, True)


def test_pieces_of_any_length_give_the_same_hands_in_javascript() -> None:
    script = f"""
    const {{ Splitter }} = require({json.dumps(str(VERIFIER))});
    const split = (text, size) => {{
      const splitter = new Splitter();
      const lines = [];
      for (let at = 0; at < text.length; at += size) lines.push(...splitter.add(text.slice(at, at + size)));
      return [...lines, splitter.rest];
    }};
    const texts = ["one\\ntwo\\n\\nthree", "{{\\n \\"a\\": 1\\n}}\\n", "", "{{", "{{}}\\n{{\\n"];
    console.log(JSON.stringify(texts.map((text) => [1, 2, 5, 100].map((size) => split(text, size)))));
    """
    (lines,) = run_node("-e", script).stdout.splitlines()
    expected = [["one", "two", "", "three"], ['{\n "a": 1\n}\n'], [""], ["{"], ["{}", "{", ""]]
    assert json.loads(lines) == [[each] * 4 for each in expected]


def test_the_pot_goes_to_the_best_hand_that_anybody_knows(view: dict) -> None:
    """To another of those that showed, in the awards, the stacks and the head alike."""
    hand = copy.deepcopy(view)
    pot = body(hand, "pot_awarded")["pot"]
    (winner,) = pot["winners"]
    loser = next(str(seat) for seat in SHOWDOWN.shown if str(seat) != winner)
    amount = pot["amount_minor"]
    pot["winners"] = {loser: amount}
    hand["pots"] = [pot]
    stacks = body(hand, "hand_ended")["stacks_minor"]
    stacks[winner] -= amount
    stacks[loser] += amount
    for seat in hand["seats"]:
        seat["stack_after_minor"] = stacks[str(seat["seat"])]
    for failed in assert_both_fail({"loser": hand})["loser"]:
        assert [line.partition(":")[0] for line in failed] == ["winner"]
        assert f"seats [{winner}] have" in failed[0] or f"seats {winner} have" in failed[0]


def test_both_verifiers_rank_hands_as_the_rules_engine_does() -> None:
    rng = random.Random(41)
    few = [card for card in TEXTS if card[0] in "23456A"]
    hands = [rng.sample(TEXTS, 5) for _ in range(1_000)] + [rng.sample(few, 5) for _ in range(2_000)]
    hands += [[rank + suit for rank in ranks] for ranks in ("A2345", "23456", "TJQKA", "2345K") for suit in "cs"]
    script = f"""
    const {{ worthOf }} = require({json.dumps(str(VERIFIER))});
    console.log(JSON.stringify({json.dumps(hands)}.map(worthOf)));
    """
    theirs = [tuple(worth) for worth in json.loads(run_node("-e", script).stdout)]
    mine = [worth_of(hand) for hand in hands]
    assert mine == theirs
    ranks = [rank(parse_cards(hand)) for hand in hands]
    assert {worth[0] for worth in mine} == set(range(9))
    for at, other in ((rng.randrange(len(hands)), rng.randrange(len(hands))) for _ in range(20_000)):
        assert (mine[at] > mine[other], mine[at] == mine[other]) == (
            ranks[at] > ranks[other],
            ranks[at] == ranks[other],
        )


def test_hands_that_houses_really_played_pass_both() -> None:
    """Hands of three rulebooks as houses exported them.

    A mucked hand that wins a side pot nobody else can win, late cards with and without a burned one, a passed-out pot
    and its carry, four pots with a rake, dead blinds, reshuffled discards, clocks that ran out, a hand shown without
    need after somebody talked, a void hand.
    """
    lines = HANDS.read_text().splitlines()
    told = assert_both_pass(*lines)
    assert sum("MISSING" in " ".join(each) for each in told) == 1
    events = [event for line in lines for event in json.loads(line)["events"]]
    kinds = {event["type"] for event in events}
    assert {"card_burned", "deck_reshuffled", "bet_returned", "hand_mucked", "hand_voided"} <= kinds
    assert any(event["body"].get("voluntary") for event in events)


def test_in_a_hand_that_was_really_played_nothing_goes_missing() -> None:
    """Four pots with a rake: whichever event is taken out, that is a failure, or it is said."""
    view = max(map(json.loads, HANDS.read_text().splitlines()), key=lambda hand: len(hand["pots"]))
    assert len(view["pots"]) > 3
    changed = [json.dumps(without(view, place, renumbered=True)) for place in range(len(view["events"]))]
    honest = verify_text(json.dumps(view))
    others = texts_in_javascript(changed)
    for event, text, other in zip(view["events"], changed, others, strict=True):
        mine = verify_text(text)
        assert bool(mine.failed) == bool(other["failed"]), event
        if not mine.failed:
            assert event["type"] in ("turn_started", "hand_settled", *BESIDE), event
            assert len(mine.not_proved) > len(honest.not_proved) or event["type"] in BESIDE, event
