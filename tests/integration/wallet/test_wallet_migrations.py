"""A ledger that an earlier version has filled comes through every later revision with what was in it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from services.runtime import migrations
from services.wallet import audit, changes, names

DEPLOYED = Path(__file__).parents[3] / "deploy" / "migrations"
ACCOUNTS = [
    ("cashier/EUR/0", 6, "house", "EUR", -1000, 1),
    ("player/ann/EUR", 1, "ann", "EUR", 600, 2),
    ("stack/ann", 2, "ann", "EUR", 400, 3),
]


PLAYERS = [
    # The first of those that look alike keeps the name; later ones keep theirs under a private key.
    ("ann", "alice", "alice", 1, "alice"),
    ("bob", "al\u0131ce", "al\u0131ce", 2, "alice#bob"),
    ("cid", "B0b", "b0b", 3, "bob"),
]
CHANGES = [
    ("bob", 2, "a test", "person/op", 5),
    ("bob", 2, "limits EUR deposit 100 buy-in 0: as bob: asked", "person/op", 6),
]


def test_players_and_their_changes_come_under_the_chain(database_url, tmp_path):
    engine = _earlier(database_url, tmp_path, "0006")
    with engine.begin() as conn:
        content = '{{"batch_id":"b","player":"{}","display_name":"{}"}}'
        for number, (player, name, key, made_ms, _) in enumerate(PLAYERS, start=1):
            state = 2 if player == "bob" else 1
            conn.execute(
                text("INSERT INTO players VALUES (:p, :n, :k, :s, :m)"),
                {"p": player, "n": name, "k": key, "s": state, "m": made_ms},
            )
            values = {"no": number, "key": f"person/op {number}", "content": content.format(player, name), "m": made_ms}
            conn.execute(
                text("INSERT INTO batches VALUES (:no, :key, 'CreatePlayer', '', 0, :content, 'OK', '{}', 0, :m)"),
                values,
            )
        for change in CHANGES:
            values = dict(zip(("p", "s", "r", "b", "m"), change, strict=True))
            conn.execute(
                text(
                    "INSERT INTO player_changes (player, state, reason, changed_by, changed_ms) "
                    "VALUES (:p, :s, :r, :b, :m)"
                ),
                values,
            )
        conn.execute(text("INSERT INTO player_limits VALUES ('player/bob/EUR', 'bob', 'EUR', 100, 0)"))
        if engine.dialect.name == "postgresql":
            conn.execute(text("SELECT setval('batch_numbers', 3)"))

    migrations.upgrade(engine, "wallet")

    with engine.connect() as conn:
        keys = conn.execute(text("SELECT player, display_key FROM players ORDER BY player")).all()
        assert [tuple(row) for row in keys] == [(player, after) for player, _, _, _, after in PLAYERS]
        report = audit.examine(conn)
        assert report.faults == ()
        booked = conn.execute(text("SELECT operation, content FROM batches WHERE batch_no > 3 ORDER BY batch_no")).all()
    assert [operation for operation, _ in booked] == ["SetPlayerState", "SetPlayerLimits"]
    assert msgspec.json.decode(booked[1][1], type=changes.LimitsChanged) == changes.LimitsChanged(
        "bob", "EUR", 100, 0, 2, "as bob: asked", "person/op"
    )
    engine.dispose()


def test_keys_of_the_migration_are_those_of_the_ledger():
    path = DEPLOYED / "wallet" / "0008_changes_in_the_chain.py"
    spec = importlib.util.spec_from_file_location("revision", path)
    assert spec is not None
    assert spec.loader is not None
    revision = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(revision)
    for name in ("Alice", "\uff41l\u0131ce", "B0b", "\u0412\u041e\u0412", "stra\u00dfe", "\u00e9\u0142"):
        assert revision._display_key(name) == names.display_key(name)


def test_accounts_keep_what_they_hold_and_their_guards(database_url, tmp_path):
    engine = _earlier(database_url, tmp_path, "0003")
    with engine.begin() as conn:
        for account in ACCOUNTS:
            values = dict(zip(("a", "k", "o", "c", "b", "m"), account, strict=True))
            conn.execute(text("INSERT INTO accounts VALUES (:a, :k, :o, :c, :b, :m)"), values)

    migrations.upgrade(engine, "wallet")
    migrations.upgrade(engine, "wallet")

    with engine.begin() as conn:
        found = conn.execute(text("SELECT account, kind, owner, currency, balance, opened_ms FROM accounts ORDER BY 1"))
        assert [tuple(row) for row in found] == ACCOUNTS
        conn.execute(text("INSERT INTO accounts VALUES ('reserved/r', 7, 'ann', 'EUR', 5, 4)"))
    for wrong in (
        "INSERT INTO accounts VALUES ('x', 99, 'ann', 'EUR', 5, 4)",
        "UPDATE accounts SET balance = -1 WHERE account = 'reserved/r'",
        "INSERT INTO accounts VALUES ('stack/ann', 2, 'ann', 'EUR', 5, 4)",
    ):
        with pytest.raises(DBAPIError), engine.begin() as conn:
            conn.execute(text(wrong))
    engine.dispose()


def _earlier(database_url: str, tmp_path: Path, last: str) -> Engine:
    """A ledger as the revision `last` had it."""
    earlier = tmp_path / "migrations"
    shutil.copytree(DEPLOYED, earlier)
    for revision in (earlier / "wallet").glob("*.py"):
        if revision.stem[:4] > last:
            revision.unlink()
    engine = create_engine(database_url)
    migrations.upgrade(engine, "wallet", earlier)
    return engine
