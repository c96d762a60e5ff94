"""Nothing that the deck says about itself holds a card, a seed or an order; and no setting can choose what is dealt."""

from __future__ import annotations

import ast
import asyncio
import re
import traceback
from pathlib import Path

import prometheus_client
import pytest
import structlog
from sqlalchemy.exc import OperationalError

from services.deck import records, values
from services.deck.cards import TEXTS
from services.deck.decks import Decks
from services.deck.settings import DeckSettings
from services.deck.steps import DeckBrokenError
from services.deck.values import HandKey, SeatCards
from services.runtime import telemetry
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.errors import Fault, to_status
from services.runtime.sealing import Sealer

DECK = Path(__file__).parents[3] / "services" / "deck"
KEY = HandKey("tables/oak", 1, 1)
CARD = re.compile(r"\b(?:" + "|".join(TEXTS) + r")\b")


@pytest.fixture
def decks() -> Decks:
    database = Database("sqlite://", inline=True)
    database.migrate_now("deck")
    return Decks(database, SystemClock(), Sealer([("test", bytes(32))]))


async def dealt(decks: Decks) -> dict[int, tuple[str, ...]]:
    await decks.open_deck(KEY, "open")
    await decks.cut_deck(KEY, "cut")
    answer = await decks.deal_cards(KEY, "deal", seats=(1, 2, 3))
    return {hand.seat: hand.cards for hand in answer.hands}


async def test_no_refusal_names_a_card(decks: Decks) -> None:
    hands = await dealt(decks)
    undealt = next(card for card in TEXTS if not any(card in hand for hand in hands.values()))
    calls = [
        decks.exchange_cards(KEY, "a", seat=1, discards=hands[2][:2]),
        decks.exchange_cards(KEY, "a", seat=1, discards=(undealt,)),
        decks.exchange_cards(KEY, "a", seat=1, discards=(hands[1][0], hands[1][0])),
        decks.exchange_cards(KEY, "a", seat=1, discards=("Zz", hands[1][0])),
        decks.exchange_cards(KEY, "a", seat=1, discards=hands[1][:3], draw_now=1),
        decks.exchange_cards(KEY, "a", seat=1, discards=hands[1][:3], folded_seats=(1,)),
        decks.exchange_cards(KEY, "a", seat=1, discards=hands[1][:3], folded_seats=(7,)),
        decks.deal_late_card(KEY, "a", seat=1),
        decks.deal_cards(KEY, "open", seats=(1, 2)),
    ]
    for call in calls:
        with pytest.raises(Fault) as caught:
            await call
        fault = caught.value
        said = [repr(fault), str(fault), str(fault.args), str(to_status(fault)), str(fault.__cause__)]
        said += traceback.format_exception(fault)[-1:]
        assert [text for text in said if CARD.search(text)] == []
    await decks.close_deck(KEY, "close")
    for seen in ((SeatCards(1, hands[2]),), (SeatCards(1, (undealt,)),)):
        with pytest.raises(Fault) as caught:
            await decks.get_fairness_proof(KEY.table, 1, seen_hands=seen)
        assert not CARD.search(repr(caught.value))


async def test_values_with_cards_do_not_print_them(decks: Decks) -> None:
    hands = await dealt(decks)
    answers = [
        await decks.deal_cards(KEY, "deal", seats=(1, 2, 3)),
        await decks.exchange_cards(KEY, "x", seat=2, discards=hands[2][:4], draw_now=3),
        await decks.deal_late_card(KEY, "late", seat=2),
        SeatCards(1, hands[1]),
    ]
    await decks.close_deck(KEY, "close")
    proof = await decks.get_fairness_proof(KEY.table, 1, seen_hands=[SeatCards(1, hands[1])])
    answers += [proof, *proof.places]
    assert [repr(answer) for answer in answers if CARD.search(repr(answer))] == []
    secret = records.Secret(b"s" * 32, shuffles=(records.ShuffleSecret(bytes(range(52)), b"salt", b"root"),))
    step = records.Step(b"digest", answers[0])
    play = records.Play(steps={"x": step})
    for value in (secret, secret.shuffles[0], step, play):
        assert repr(value) == f"{type(value).__name__}(...)"
    record = records.HandRecord(
        KEY.table, 1, 1, 1, records.Stage.OPENED, b"", b"", b"", 0, 0, key=b"k" * 32, secret=secret, play=play
    )
    assert repr(record) == "HandRecord('tables/oak', hand=1, stage=OPENED)"
    table = records.TableRecord(KEY.table, 1, 0, 1, 1, b"chain", b"c", b"the next seed", 0, 0)
    assert "seed" not in repr(table)
    assert all(hasattr(values, name) for name in ("Dealt", "Exchanged", "LateDealt", "Proof"))


async def test_no_log_line_and_no_metric_of_a_hand_holds_a_card(decks: Decks) -> None:
    with structlog.testing.capture_logs() as lines:
        hands = await dealt(decks)
        await decks.exchange_cards(KEY, "x", seat=1, discards=hands[1])
        with pytest.raises(Fault):
            await decks.exchange_cards(KEY, "y", seat=1, discards=hands[1])
        await decks.close_deck(KEY, "close")
    told = "\n".join(map(str, lines)) + prometheus_client.generate_latest().decode()
    assert "fivedraw_deck_steps_total" in told
    assert not CARD.search(told)
    assert "tables/oak" not in told


@pytest.mark.parametrize(
    "statement", ["DROP TABLE deck_hands", "ALTER TABLE deck_hands RENAME COLUMN sealed_play TO x"]
)
async def test_no_failure_of_the_database_tells_a_card(statement: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An exception of a driver quotes the statement and its parameters; what they hold is sealed."""
    database = Database("sqlite://", inline=True)
    database.migrate_now("deck")
    decks = Decks(database, SystemClock(), Sealer([("test", bytes(32))]))
    hands = await dealt(decks)
    await database.write(lambda conn: conn.exec_driver_sql(statement))
    with pytest.raises(OperationalError) as caught:
        await decks.exchange_cards(KEY, "x", seat=1, discards=hands[1][:3])
    told = "".join(traceback.format_exception(caught.value)) + str(telemetry.where(caught.value))
    told += "".join(capsys.readouterr())
    assert "deck_hands" in told
    assert not CARD.search(told)
    assert not any(bytes(TEXTS.index(card) for card in hand) in told.encode() for hand in hands.values())


async def test_a_deck_that_is_not_the_52_is_never_dealt_and_not_told(
    decks: Decks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await decks.open_deck(KEY, "open")
    for order in ((0,) * 52, tuple(range(51)), (*range(51), 52), tuple(range(53))):
        with monkeypatch.context() as patch:
            patch.setattr("services.deck.shuffling.shuffled", lambda *_, order=order: order)
            with pytest.raises(DeckBrokenError) as caught:
                await decks.cut_deck(KEY, "cut")
        assert not CARD.search("".join(traceback.format_exception(caught.value)))
    # Nothing of it was kept: the same step takes a sound shuffle.
    assert len((await decks.cut_deck(KEY, "cut")).root) == 32


def test_no_setting_chooses_a_seed_or_an_order() -> None:
    own = set(DeckSettings.model_fields) - set(DeckSettings.__mro__[1].model_fields)
    assert own == {"deck_seed_delay_ms"}
    words = ("entropy", "random", "shuffle", "order", "deterministic")
    assert [name for name in DeckSettings.model_fields if any(word in name for word in words)] == []


def test_the_started_service_takes_the_operating_systems_entropy() -> None:
    """`__main__` names no source of its own, and the default of `Decks` is the operating system's."""
    main = (DECK / "__main__.py").read_text()
    assert "entropy" not in main
    defaults = Decks.__init__.__kwdefaults__
    assert defaults["entropy"].__name__ == "urandom"


def test_no_other_chance_is_used_in_the_service() -> None:
    """Only `os.urandom` feeds the generator and nonces; nothing imports `random`, `secrets` or `numpy`."""
    for path in DECK.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {"random", "secrets", "numpy", "uuid", "time"} & {name.split(".")[0] for name in names}, path


async def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database("sqlite://", inline=True)
    database.migrate_now("deck")
    decks = Decks(database, SystemClock(), Sealer([("test", bytes(32))]))
    monkeypatch.setattr("services.deck.queue.STEPS_WAITING_MAX", 10)
    calls = [decks.open_deck(HandKey(f"tables/t{n}", 1, 1), "open") for n in range(12)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [each.reason for each in outcomes if isinstance(each, Fault)] == ["QUEUE_FULL", "QUEUE_FULL"]
