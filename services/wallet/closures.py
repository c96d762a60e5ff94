"""Why the ledger, or a table's part of it, takes no new hand, and how that begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, select, update

from services.wallet.schema import ledger_state, table_ledgers

REASON_CHARACTERS_MAX: Final = 500

WHOLE: Final = ""
"""The key of the whole ledger among closures; all others are tables."""


def closures(conn: Connection) -> dict[str, str]:
    """The reasons for which new hands are refused, by table, and by `WHOLE`; empty where all is open."""
    found = {WHOLE: conn.scalar(select(ledger_state.c.closed_reason)) or ""}
    tables = select(table_ledgers.c.table_id, table_ledgers.c.closed_reason).where(table_ledgers.c.closed_reason != "")
    found.update((table, reason) for table, reason in conn.execute(tables.order_by(table_ledgers.c.table_id)))
    return {key: reason for key, reason in found.items() if reason}


def close_table(conn: Connection, table: str, reason: str) -> None:
    """Stops new hands at one table until a clean audit; the first reason stays."""
    conn.execute(
        update(table_ledgers)
        .where(table_ledgers.c.table_id == table, table_ledgers.c.closed_reason == "")
        .values(closed_reason=reason[:REASON_CHARACTERS_MAX])
    )


def close_ledger(conn: Connection, reason: str) -> None:
    """Stops new hands until a clean audit; the first reason stays."""
    conn.execute(
        update(ledger_state)
        .where(ledger_state.c.id == 1, ledger_state.c.closed_reason == "")
        .values(closed_reason=reason[:REASON_CHARACTERS_MAX])
    )


def reopen(conn: Connection, seen: Mapping[str, str], now_ms: int) -> None:
    """Opens what a clean audit saw closed on its snapshot; what was closed for another reason since stays so."""
    conn.execute(update(ledger_state).where(ledger_state.c.id == 1).values(audited_ms=now_ms))
    for key, reason in seen.items():
        if key == WHOLE:
            row = update(ledger_state).where(ledger_state.c.id == 1, ledger_state.c.closed_reason == reason)
        else:
            row = update(table_ledgers).where(table_ledgers.c.table_id == key, table_ledgers.c.closed_reason == reason)
        conn.execute(row.values(closed_reason=""))
