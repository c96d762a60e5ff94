"""A ledger that an earlier version has filled comes through every later revision with what was in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from services.runtime import migrations

DEPLOYED = Path(__file__).parents[3] / "deploy" / "migrations"
ACCOUNTS = [
    ("cashier/EUR/0", 6, "house", "EUR", -1000, 1),
    ("player/ann/EUR", 1, "ann", "EUR", 600, 2),
    ("stack/ann", 2, "ann", "EUR", 400, 3),
]


def test_accounts_keep_what_they_hold_and_their_guards(database_url, tmp_path):
    earlier = tmp_path / "migrations"
    shutil.copytree(DEPLOYED, earlier)
    for revision in (earlier / "wallet").glob("*.py"):
        if revision.stem[:4] > "0003":
            revision.unlink()
    engine = create_engine(database_url)
    migrations.upgrade(engine, "wallet", earlier)
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
