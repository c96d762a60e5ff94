"""Whether what is append-only still is: the triggers as the migrations make them, and no others."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, bindparam, text

from services.wallet.schema import metadata
from services.wallet.story import TellFault

_APPEND_ONLY: Final = ("batches", "transfers", "seals", "player_changes")

_FUNCTION: Final = "BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END"
# Before, on delete, update and truncate, once per statement.
_TGTYPE: Final = 58


def check(conn: Connection, fault: TellFault) -> None:
    """Tells TRIGGER_MISSING for one that is gone or does something else, TRIGGER_UNKNOWN for one that nobody made."""
    present = _on_postgresql(conn) if conn.dialect.name == "postgresql" else _on_sqlite(conn)
    made = _made_on_postgresql() if conn.dialect.name == "postgresql" else _made_on_sqlite()
    for (table, name), what in sorted(made.items()):
        if present.get((table, name)) != what:
            fault("TRIGGER_MISSING", f"{table} can be changed: its trigger {name} is gone or refuses nothing")
    for table, name in sorted(present.keys() - made.keys()):
        fault("TRIGGER_UNKNOWN", f"{table} has a trigger {name}, which no migration made")


def _made_on_sqlite() -> dict[tuple[str, str], str]:
    return {
        (table, f"{table}_no_{change.lower()}"): (
            f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )
        for table in _APPEND_ONLY
        for change in ("UPDATE", "DELETE")
    }


def _on_sqlite(conn: Connection) -> dict[tuple[str, str], str]:
    rows = conn.execute(text("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'"))
    return {(table, name): sql for table, name, sql in rows if table in metadata.tables}


def _made_on_postgresql() -> dict[tuple[str, str], str]:
    return {(table, f"{table}_append_only"): f"{_TGTYPE} plpgsql {_FUNCTION}" for table in _APPEND_ONLY}


def _on_postgresql(conn: Connection) -> dict[tuple[str, str], str]:
    """What each enabled trigger does: its kind, its function's language and source; a condition is said too."""
    rows = conn.execute(
        text(
            """SELECT c.relname, t.tgname, t.tgtype || ' ' || l.lanname || ' ' || trim(p.prosrc)
                || coalesce(' when ' || t.tgqual::text, '')
                || CASE WHEN t.tgenabled IN ('O', 'A') THEN '' ELSE ' disabled' END
            FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
            JOIN pg_language l ON l.oid = p.prolang
            WHERE NOT t.tgisinternal AND c.relname IN :tables"""
        ).bindparams(bindparam("tables", list(metadata.tables), expanding=True))
    )
    return {(table, name): what for table, name, what in rows}
