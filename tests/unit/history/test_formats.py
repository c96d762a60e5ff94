"""Formats on hands worked out by hand: what each line says, and what no line may say."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from services.history.formats import structured, text, tracker
from services.history.formats.money import amount
from services.history.formats.words import eastern
from services.history.viewing import Viewer, view
from services.rules.commands import Act, ClockRanOut, Discard
from services.runtime.errors import Fault
from tests.property.history import tracker_grammar
from tests.unit.history.played import PLAYERS, SEALER, play, void

STACKS = {1: 10_000, 2: 10_000, 3: 10_000}
FIXED = {"betting": "fixed_limit", "small_bet": 1000, "big_bet": 2000, "big_blind": 1000, "small_blind": 500}
SCHEMA_FILE = Path(__file__).resolve().parents[3] / "docs" / "history.schema.json"


def _tracker(script, *, owner: int | None = None, **options) -> list[str]:
    options = {"stacks": STACKS, "button": 1, "time_outs": 0.0} | options
    played = play(random.Random(1), script=script, **options)
    viewer = Viewer(PLAYERS[owner]) if owner else Viewer()
    return tracker.write(view(played.key, 77, played.record, viewer, SEALER)).split("\n")


def test_a_walk_returns_the_blinds_difference_and_shows_nothing() -> None:
    lines = _tracker([Act(1, "fold"), Act(2, "fold")])
    assert lines == [
        "PokerStars Hand #77:  5 Card Draw No Limit ($0.05/$0.10 USD) - 2023/11/14 17:13:20 ET",
        "Table 'Red' 6-max Seat #1 is the button",
        "Seat 1: Player 1 ($100 in chips)",
        "Seat 2: Player 2 ($100 in chips)",
        "Seat 3: Player 3 ($100 in chips)",
        "Player 2: posts small blind $0.05",
        "Player 3: posts big blind $0.10",
        "*** DEALING HANDS ***",
        "Player 1: folds",
        "Player 2: folds",
        "Uncalled bet ($0.05) returned to Player 3",
        "Player 3 collected $0.10 from pot",
        "Player 3: doesn't show hand",
        "*** SUMMARY ***",
        "Total pot $0.10 | Rake $0",
        "Seat 1: Player 1 (button) folded before the Draw (didn't bet)",
        "Seat 2: Player 2 (small blind) folded before the Draw",
        "Seat 3: Player 3 (big blind) collected ($0.10)",
        "",
        "",
        "",
    ]


def test_the_fourth_bet_caps_a_fixed_limit_round_big_blind_counted() -> None:
    # RULES 8.1 with a bet of 10: 20, 30, 40, then nobody may raise.
    script = [Act(1, "raise", 2000), Act(2, "raise", 3000), Act(3, "raise", 4000), Act(1, "call"), Act(2, "call")]
    lines = _tracker(script, owner=1, overrides=FIXED)
    at = lines.index("Player 3: raises $10 to $40")
    assert lines[at + 1 : at + 4] == ["Betting is capped", "Player 1: calls $20", "Player 2: calls $10"]
    assert lines[0].startswith("PokerStars Hand #77:  5 Card Draw Limit ($10/$20 USD) - ")


def test_an_all_in_of_less_than_half_a_bet_does_not_count_towards_the_cap() -> None:
    # Seat 2's 24 is 4 above the bet of 20: a call-sized extra. Seat 3's raise to 30 is then the third bet.
    script = [Act(1, "raise", 2000), Act(2, "raise", 2400), Act(3, "raise", 3000), Act(1, "raise", 4000)]
    lines = _tracker(script, owner=1, overrides=FIXED, stacks={1: 10_000, 2: 2_400, 3: 10_000})
    assert "Player 2: raises $4 to $24 and is all-in" in lines
    assert lines[lines.index("Player 3: raises $6 to $30") + 1] == "Player 1: raises $10 to $40"
    assert lines[lines.index("Player 1: raises $10 to $40") + 1] == "Betting is capped"


def test_the_owner_alone_sees_discards_and_new_cards() -> None:
    played = play(random.Random(4), stacks=STACKS, button=1, script=[Act(1, "call"), Act(2, "call"), Act(3, "check")])
    hand = view(played.key, 77, played.record, Viewer(PLAYERS[2]), SEALER)
    (own,) = [seat for seat in hand.seats if seat.seat == 2]
    lines = tracker.write(hand).split("\n")
    assert f"Dealt to Player 2 [{' '.join(own.dealt)}]" in lines
    others = [line for line in lines if line.startswith(("Player 1: discards", "Player 3: discards"))]
    assert all("[" not in line for line in others)
    if own.discarded:
        at = next(place for place, line in enumerate(lines) if line.startswith("Player 2: discards"))
        assert lines[at].endswith(f"[{' '.join(own.discarded)}]")
        kept = [card for card in own.dealt if card not in own.discarded]
        assert lines[at + 1] == f"Dealt to Player 2 [{' '.join(kept)}] [{' '.join(own.drawn)}]"


def test_who_gives_up_all_five_is_dealt_one_bracket() -> None:
    rng = random.Random(2)
    calls = [Act(1, "call"), Act(2, "call"), Act(3, "check")]
    played = play(rng, stacks=STACKS, button=1, script=list(calls), time_outs=0.0, discards=(5, 5))
    hand = view(played.key, 77, played.record, Viewer(PLAYERS[2]), SEALER)
    (own,) = [seat for seat in hand.seats if seat.seat == 2]
    assert f"Dealt to Player 2 [{' '.join(own.drawn)}]" in tracker.write(hand).split("\n")


def test_a_missed_clock_is_told_before_what_it_did() -> None:
    lines = _tracker([ClockRanOut(1), Act(2, "call"), Act(3, "check"), ClockRanOut(2), Discard(3)])
    assert lines[lines.index("Player 1: folds") - 1] == "Player 1 has timed out"
    assert lines[lines.index("Player 2: stands pat") - 1] == "Player 2 has timed out"


def test_a_newcomers_post_and_a_missed_blind_are_told_after_the_blinds() -> None:
    stacks = {1: 1000, 2: 1000, 3: 1000, 4: 1000, 5: 1000}
    lines = _tracker([], owner=1, stacks=stacks, posts={4: 10, 5: 10}, dead_posts={5: 5})
    at = lines.index("Player 3: posts big blind $0.10")
    assert lines[at + 1 : at + 3] == ["Player 4: posts big blind $0.10", "Player 5: posts small & big blinds $0.15"]


def test_play_money_is_plain_and_said_to_be() -> None:
    lines = _tracker([Act(1, "fold"), Act(2, "fold")], currency="CHIPS")
    assert "5 Card Draw No Limit (5/10) - " in lines[0]
    assert lines[1] == "Table 'Red' 6-max (Play Money) Seat #1 is the button"
    assert lines[2] == "Seat 1: Player 1 (10000 in chips)"


@pytest.mark.parametrize(
    ("minor", "currency", "written"),
    [(100, "USD", "$1"), (150, "USD", "$1.50"), (5, "EUR", "€0.05"), (0, "GBP", "£0"), (150, "CHIPS", "150"),
     (700, "PLN", "7 PLN"), (7, "JPY", "7 JPY"), (1500, "KWD", "1.500 KWD"), (-250, "USD", "$-2.50")],
)  # fmt: skip
def test_amounts_have_all_their_decimals_or_none(minor: int, currency: str, written: str) -> None:
    assert amount(minor, currency) == written


@pytest.mark.parametrize(
    ("utc", "local"),
    [
        # Second Sunday of March 2024 at 2:00 local, first Sunday of November at 2:00 local.
        ("2024-03-10T06:59:59Z", "01:59:59"),
        ("2024-03-10T07:00:00Z", "03:00:00"),
        ("2024-11-03T05:59:59Z", "01:59:59"),
        ("2024-11-03T06:00:00Z", "01:00:00"),
        ("2026-03-08T07:00:00Z", "03:00:00"),
        ("2026-07-01T00:30:00Z", "20:30:00"),
        ("2025-01-01T03:00:00Z", "22:00:00"),
    ],
)
def test_eastern_time_changes_when_new_york_does(utc: str, local: str) -> None:
    stamp = Timestamp()
    stamp.FromJsonString(utc)
    assert f"{eastern(stamp):%H:%M:%S}" == local


@pytest.mark.parametrize(
    ("rulebook", "options"),
    [
        ("openers", {}),
        ("american", {}),
        ("house", {"currency": "PLN"}),
        ("house", {"carry": 30}),
    ],
)
def test_what_the_tracker_cannot_say_is_refused(rulebook: str, options: dict) -> None:
    played = play(random.Random(1), rulebook, **options)
    with pytest.raises(Fault) as caught:
        tracker.write(view(played.key, 77, played.record, Viewer(), SEALER))
    assert caught.value.reason == "FORMAT_CANNOT_EXPRESS"


def test_a_void_hand_is_told_in_text_and_json_and_nowhere_else() -> None:
    played = void(random.Random(3), stacks=STACKS, button=1)
    hand = view(played.key, 77, played.record, Viewer(), SEALER)
    written = text.write(hand)
    assert "The hand is void by operator-1: an operator's order; every chip goes back" in written
    assert "Seat 1: Player 1 $100 -> $100" in written
    assert json.loads(structured.write(hand))["outcome"] == "void"
    with pytest.raises(Fault, match="FORMAT_CANNOT_EXPRESS"):
        tracker.write(hand)


def test_the_published_schema_is_what_the_code_writes() -> None:
    published = json.loads(SCHEMA_FILE.read_text())
    assert published == structured.schema(), "run `python -m services.history.formats.schema`"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a: b", "a:b"),
        ("Seat 3", "Seat_3"),
        ("Table 9", "Table_9"),
        ("Uncalled bet", "Uncalled_bet"),
        ("*** SHOW DOWN ***", "***_SHOW_DOWN_***"),
        ("x collected $5 from pot", "x_collected_$5_from_pot"),
        ("b (9 in chips)", "b_(9_in_chips)"),
        ("Seaton 3", "Seaton 3"),
        ("Mr. Button (button)", "Mr. Button (button)"),
        ("Юля 7", "Юля 7"),
    ],
)
def test_a_name_that_reads_like_the_format_is_bent_in_every_line(name: str, written: str) -> None:
    calls = [Act(1, "call"), Act(2, "call"), Act(3, "check")]
    played = play(random.Random(2), stacks=STACKS, button=1, script=calls, time_outs=0.0)
    hand = view(played.key, 77, played.record, Viewer(PLAYERS[1]), SEALER)
    hand.seats[0].display_name = name
    text_of_hand = tracker.write(hand)
    (found,) = tracker_grammar.split(text_of_hand)
    tracker_grammar.check(found, written)
    assert text_of_hand.count(f"Seat 1: {written} ") == 2


def test_names_cannot_forge_a_line() -> None:
    played = play(random.Random(1), stacks=STACKS, button=1, script=[Act(1, "fold"), Act(2, "fold")])
    hand = view(played.key, 77, played.record, Viewer(), SEALER)
    hand.seats[0].display_name = "Eve\nPlayer 2: shows [As Ks Qs Js Ts] (a Royal Flush)"
    hand.table_display_name = "it's\u2028mine"
    written = tracker.write(hand)
    assert not any(line.startswith("Player 2: shows") for line in written.split("\n"))
    assert "Table 'it’s mine' 6-max" in written
