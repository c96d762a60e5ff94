"""Logs are structured, and hold no card, token, key or foreign message."""

import json
import logging

import pytest
import structlog

from services.runtime import telemetry


@pytest.fixture
def lines(capsys):
    telemetry.configure_logging("test", level="debug")

    def read() -> list[dict]:
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    yield read
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.getLogger().handlers.clear()


def test_a_line_says_who_and_when(lines):
    telemetry.logger("table.sweeper").info("swept", tables=3)
    (line,) = lines()
    assert (line["service"], line["subject"], line["event"], line["level"], line["tables"]) == (
        "test",
        "table.sweeper",
        "swept",
        "info",
        3,
    )
    assert line["time"].endswith("Z")


@pytest.mark.parametrize(
    "fields",
    [
        {"hole_cards": "As"},
        {"cards": ["As", "Kd"]},
        {"seen": ["As", "Kd"]},
        {"note": "dealt As Kd to seat 3"},
        {"note": "AsKdQh"},
        {"note": "['As', 'Kd']"},
        {"nested": {"seat": {"hole_cards": ["As"]}}},
        {"nested": [{"text": "As,Kd"}]},
    ],
    ids=str,
)
def test_no_card_is_logged(lines, fields):
    telemetry.logger("x").info("event", **fields)
    (line,) = lines()
    text = json.dumps({key: value for key, value in line.items() if key not in ("time", "subject")})
    assert "As" not in text
    assert "Kd" not in text


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"authorization": "Bearer abc"}, "abc"),
        ({"note": "Bearer eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl"}, "eyJ"),
        ({"url": "postgresql://user:hunter2@host/db"}, "hunter2"),
        ({"service_key": "00ff"}, "00ff"),
        ({"payload": b"\x01hidden"}, "hidden"),
    ],
)
def test_no_secret_is_logged(lines, fields, secret):
    telemetry.logger("x").warning("event", **fields)
    assert secret not in json.dumps(lines())


def test_words_and_names_are_left_alone(lines):
    note = "As a rule, 2d6 is not a card; Ts and Cs are letters; tables/2c-main; 7s timeout"
    telemetry.logger("x").info(note, key_id="k1", hand=7, player="players/Ad")
    (line,) = lines()
    assert (line["event"], line["key_id"], line["player"]) == (note, "k1", "players/Ad")


def test_an_exception_is_logged_by_type_and_place_only(lines):
    try:
        raise ValueError("row (7, 'As Kd')")
    except ValueError:
        telemetry.logger("x").exception("it failed")
    (line,) = lines()
    assert line["error"] == "ValueError"
    assert line["at"][-1].startswith("test_telemetry.py:")
    assert "row" not in json.dumps(line)


def test_the_standard_library_logs_through_the_same_processors(lines):
    try:
        raise ValueError("As Kd")
    except ValueError:
        logging.getLogger("celery").warning("task got %s", "As Kd", exc_info=True)
    (line,) = lines()
    assert line["event"] == f"task got {telemetry.STRUCK_OUT}"
    assert "As Kd" not in json.dumps(line)


def test_debug_is_off_unless_asked_for(capsys):
    telemetry.configure_logging("test", level="info")
    telemetry.logger("x").debug("hidden")
    assert capsys.readouterr().err == ""
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.getLogger().handlers.clear()
