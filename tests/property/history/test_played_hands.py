"""Random hands of all rulebooks, in every format and for every viewer. Each failure names its seed."""

from __future__ import annotations

import json
import random
import re
import tomllib

import jsonschema
import pytest
from fivedraw.history.v1 import record_pb2

from services.cli.scenario import run_scenario
from services.history.formats import phh, scenario, structured, text, tracker
from services.history.names import HandKey
from services.history.record import decode, encode, record_of_ledger
from services.history.replay import replay
from services.history.summary import summarise
from services.history.viewing import Viewer, view
from services.rules.cards import format_card
from services.rules.rulebook import load_rulebook
from services.runtime.errors import Fault
from tests.property.history import tracker_grammar
from tests.unit.history.played import PLAYERS, SEALER, Played, play, void

HANDS_OF_EACH = 10
HAND_ID = 8_123_456_789_012_345_678
AUDITOR = Viewer("players/auditor", audits=True)
SPECTATOR = Viewer("players/nobody")
FIXED = {"betting": "fixed_limit", "small_bet": 10, "big_bet": 20, "big_blind": 10, "small_blind": 5}

GAMES = {
    "house": {},
    "house pot limit": {"betting": "pot_limit", "ante": 2, "rake_basis_points": 500, "rake_cap": 300},
    "house mixed reshuffle": {"reshuffle": "mixed"},
    "casadela": {"rake_basis_points": 250},
    "clocked": {},
    "clocked fixed": FIXED,
    "openers": {},
    "openers nine seats": {"seats": 9},
    "american": {},
}


def _newcomer(rng: random.Random, game: str) -> dict:
    """Six seats of which one comes in with a big blind, half of the times with a missed small one besides."""
    big = load_rulebook(game.split(" ", maxsplit=1)[0]).with_options(GAMES[game]).big_blind
    missed = {5: big // 2} if rng.random() < 0.5 else {}
    stacks = {seat: rng.randint(2 * big, 60 * big) for seat in range(1, 7)}
    return {"stacks": stacks, "button": 1, "posts": {5: big}, "dead_posts": missed}


def _hand(game: str, seed: int) -> Played:
    rng = random.Random(f"{game}/{seed}")
    rulebook = game.split(" ", maxsplit=1)[0]
    carries = rulebook in ("openers", "american")
    blinds = {} if carries or rng.random() < 0.6 else _newcomer(rng, game)
    return play(
        rng,
        rulebook,
        overrides=GAMES[game],
        hand=seed + 1,
        # Some hands draw as much as they may, so that the stub runs short.
        folding=rng.choice([0.0, 0.1, 0.4]),
        aggression=rng.choice([0.1, 0.3, 0.6]),
        discards=rng.choice([(0, 2), (0, 5), (4, 5)]),
        carry=rng.choice([0, 30]) if carries else 0,
        currency=rng.choice(["USD", "EUR", "CHIPS"]),
        auto_muck={seat: rng.random() < 0.8 for seat in range(1, 10)},
        **blinds,
    )


@pytest.mark.parametrize("game", GAMES)
def test_a_played_hand_as_a_scenario_ends_the_same(game: str) -> None:
    for seed in range(HANDS_OF_EACH):
        played = _hand(game, seed)
        seen = view(played.key, HAND_ID, played.record, AUDITOR, SEALER)
        assert run_scenario(json.loads(scenario.write(seen))) == [], f"{game} {seed}"


def test_scenarios_hold_with_reshuffles_and_the_late_fourth_card() -> None:
    reshuffled = burned = 0
    for game, overrides, seats in (
        ("openers", {"seats": 9}, 9),
        ("openers", {"seats": 9, "reshuffle": "mixed"}, 9),
        ("house", {"seats": 9}, 9),
        ("house", {"reshuffle": "mixed"}, 6),
        ("casadela", {}, 6),
    ):
        for seed in range(16):
            rng = random.Random(f"reshuffle/{game}/{overrides}/{seed}")
            stacks = dict.fromkeys(range(1, seats + 1), 1_000_000)
            played = play(
                rng,
                game,
                overrides=overrides,
                stacks=stacks,
                folding=0.02,
                aggression=0.6 if game == "openers" else 0.05,
                time_outs=0.0,
                discards=(3, 3) if seed % 2 else (3, 5),
                last_draws_four=bool(seed % 2),
            )
            seen = view(played.key, HAND_ID, played.record, AUDITOR, SEALER)
            reshuffled += any(event.HasField("deck_reshuffled") for event in seen.events)
            burned += any(event.HasField("card_burned") for event in seen.events)
            assert run_scenario(scenario.to_object(seen)) == [], f"{game} {overrides} {seed}"
    assert reshuffled > 25
    assert burned > 5


@pytest.mark.parametrize("game", GAMES)
def test_no_export_holds_a_card_that_its_viewer_may_not_see(game: str) -> None:
    for seed in range(HANDS_OF_EACH):
        if seed % 10 == 9:
            played = void(random.Random(f"{game}/{seed}"), rulebook=game.split(" ", maxsplit=1)[0])
        else:
            played = _hand(game, seed)
        shown = _shown(played)
        for viewer in (SPECTATOR, *(Viewer(PLAYERS[seat]) for seat in played.state.seats)):
            seen = view(played.key, HAND_ID, played.record, viewer, SEALER)
            allowed = _allowed(played, viewer, shown)
            for found in (_cards_of_message(seen), *(_cards_of_text(each) for each in _texts(seen))):
                assert found <= allowed, f"{game} {seed}: {viewer} sees {found - allowed}"


@pytest.mark.parametrize("game", [game for game in GAMES if not game.startswith(("openers", "american"))])
def test_tracker_text_is_in_its_grammar_and_adds_up(game: str) -> None:
    for seed in range(HANDS_OF_EACH):
        played = _hand(game, seed)
        for owner in played.state.seats:
            viewer = Viewer(PLAYERS[owner])
            written = tracker.write(view(played.key, HAND_ID, played.record, viewer, SEALER))
            (hand,) = tracker_grammar.split(written)
            found = tracker_grammar.check(hand, f"Player {owner}")
            assert found.hand_id == HAND_ID
            assert found.pot == sum(pot.amount for pot in played.state.pots), f"{game} {seed}"
            assert found.rake == played.state.rake


def test_tracker_text_for_who_was_not_dealt_in_has_no_cards_or_is_refused() -> None:
    told = refused = 0
    for seed in range(60):
        played = _hand("house", seed)
        seen = view(played.key, HAND_ID, played.record, SPECTATOR, SEALER)
        # A mucked hand's line has its cards, and there is none without them.
        if any(seat.mucked and not seat.shown and seat.seat not in _winners(played) for seat in seen.seats):
            with pytest.raises(Fault, match="FORMAT_CANNOT_EXPRESS"):
                tracker.write(seen)
            refused += 1
        else:
            (hand,) = tracker_grammar.split(tracker.write(seen))
            assert not tracker_grammar.check(hand, None).owner_cards
            told += 1
    assert min(told, refused) >= 5


@pytest.mark.parametrize("game", ["openers", "american"])
def test_tracker_refuses_what_it_has_no_words_for(game: str) -> None:
    played = _hand(game, 1)
    with pytest.raises(Fault, match="FORMAT_CANNOT_EXPRESS"):
        tracker.write(view(played.key, HAND_ID, played.record, SPECTATOR, SEALER))


def test_structured_json_follows_its_schema() -> None:
    validator = jsonschema.Draft202012Validator(structured.schema())
    for game in GAMES:
        for seed in range(1):
            played = _hand(game, seed)
            for viewer in (SPECTATOR, AUDITOR, Viewer(PLAYERS[played.state.seats[0]])):
                written = json.loads(structured.write(view(played.key, HAND_ID, played.record, viewer, SEALER)))
                validator.validate(written)
                assert written["hand_id"] == str(HAND_ID)
    for record in (void(random.Random(1)).record, _incomplete(True), _incomplete(False)):
        seen = view(HandKey("red", 1), HAND_ID, record, AUDITOR, SEALER)
        written = json.loads(structured.write(seen))
        validator.validate(written)
        assert written["incomplete"] == record.HasField("ledger")


def _incomplete(is_void: bool):
    """The record of a hand whose log was lost."""
    ledger = record_pb2.LedgerHand(hand=1, epoch=1, void=is_void, reason="the log was lost" if is_void else "")
    ledger.seats.add(seat=1, player="players/p1", paid_minor=10, won_minor=0 if is_void else 20)
    ledger.seats.add(seat=2, player="players/p2", paid_minor=10)
    ledger.open_time.FromMilliseconds(1)
    ledger.close_time.FromMilliseconds(2)
    return record_of_ledger(play(random.Random(1)).table, ledger)


def test_phh_is_toml_and_holds_as_many_cards_as_were_dealt() -> None:
    for game in GAMES:
        for seed in range(5):
            played = _hand(game, seed)
            seen = view(played.key, HAND_ID, played.record, AUDITOR, SEALER)
            document = tomllib.loads(phh.write(seen))
            assert sum(document["finishing_stacks"]) == sum(played.state.stacks)
            deals = [action for action in document["actions"] if action.startswith("d dh")]
            dealt = "".join(action.split(" ")[3] for action in deals)
            drawn = sum(event.cards_drawn.count for event in seen.events if event.HasField("cards_drawn"))
            assert "?" not in dealt
            assert len(dealt) == 2 * (5 * len(played.state.seats) + drawn)


def test_sums_of_a_hand_are_the_engines() -> None:
    for game in GAMES:
        for seed in range(HANDS_OF_EACH):
            played = _hand(game, seed)
            summary = summarise(played.key, decode(encode(played.record)))
            state = played.state
            assert summary.rake_minor == state.rake
            assert summary.carry_out_minor == state.carry_out
            net = {player.seat: player.net_minor for player in summary.players}
            assert sum(net.values()) == summary.carry_in_minor - state.carry_out - state.rake
            for player in summary.players:
                position = state.position(player.seat)
                assert player.stack_before_minor + player.net_minor == state.stacks[position]


def test_a_replay_holds_every_event_once_and_in_sequence() -> None:
    for seed in range(10):
        played = _hand("house", seed)
        seen = view(played.key, HAND_ID, played.record, Viewer(PLAYERS[played.state.seats[0]]), SEALER)
        told = replay(seen)
        sequences = [event.sequence for commit in told.commits for event in commit]
        first = told.snapshot.sequence + 1
        assert sequences == list(range(first, first + len(seen.events)))


def _texts(seen) -> list[str]:
    texts = [text.write(seen), structured.write(seen), phh.write(seen)]
    try:
        texts.append(tracker.write(seen))
    except Fault as fault:
        if fault.reason != "FORMAT_CANNOT_EXPRESS":
            raise
    return texts


def _winners(played: Played) -> set[int]:
    return {seat for pot in played.state.pots for seat, chips in pot.winners.items() if chips}


def _shown(played: Played) -> set[str]:
    positions = played.state.shown
    return {format_card(card) for position in positions for card in played.state.hands[position]}


def _allowed(played: Played, viewer: Viewer, shown: set[str]) -> set[str]:
    """What RULES 3.8 lets a viewer see, from what the engine knows."""
    allowed = set(shown)
    held = played.held()
    seats = [seat for seat in played.state.seats if PLAYERS[seat] == viewer.player]
    for seat in seats:
        allowed |= held[seat]
        for position in played.state.mucked:
            allowed |= {format_card(card) for card in played.state.hands[position]}
    return allowed


def _cards_of_text(written: str) -> set[str]:
    """Every card in a text, cards written without a space between them too. Hashes are taken out: they are hex."""
    without_hashes = re.sub(r"\b(?:[0-9a-f]{2}){16,}\b", "", written)
    runs = re.findall(r"(?<![A-Za-z0-9-])(?:[2-9TJQKA][cdhs])+(?![A-Za-z0-9-])", without_hashes)
    return {run[place : place + 2] for run in runs for place in range(0, len(run), 2)}


def _cards_of_message(message) -> set[str]:
    """Every text of two characters that is a card, wherever in the message it stands."""
    found: set[str] = set()

    def walk(value) -> None:
        if isinstance(value, str):
            if re.fullmatch(r"[2-9TJQKA][cdhs]", value):
                found.add(value)
        elif hasattr(value, "ListFields"):
            for descriptor, content in value.ListFields():
                is_map = descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry
                for item in content.values() if is_map else content if descriptor.is_repeated else [content]:
                    walk(item)

    walk(message)
    return found
