"""Whole sets of rows in one statement each, in the dialect of either database.

The text of a statement does not depend on how many rows it is about, so it is planned and prepared once, and its rows
come and go as one JSON value. On SQLite that is what keeps the house quick: the driver gives the interpreter's lock up
and takes it again for every row that it steps over, and each time has to wait for whatever else the process computes.
Names of tables and columns come from `schema`, never from a caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
import psycopg
from sqlalchemy import BigInteger, Boolean, Connection, Integer, SmallInteger, Table, Text
from sqlalchemy.exc import DBAPIError

Row = tuple[Any, ...]

_ROWS: Final = msgspec.json.Decoder(list[tuple[Any, ...]])

_TYPES: Final[tuple[tuple[type, str], ...]] = (
    # BigInteger and SmallInteger are Integers too, so they come first.
    (BigInteger, "bigint"),
    (SmallInteger, "smallint"),
    (Integer, "integer"),
    (Boolean, "boolean"),
    (Text, "text"),
)


def is_postgresql(conn: Connection) -> bool:
    """Whether the connection leads to PostgreSQL; else it is SQLite."""
    return conn.dialect.name == "postgresql"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement and its values."""

    text: str
    values: Row


def run(conn: Connection, statements: Iterable[Statement | None]) -> list[Sequence[Row]]:
    """Runs statements in order and returns the rows of each; `None` is none to run, with no rows.

    On PostgreSQL each is sent as soon as it is made, and all of them before the first answer is waited for: a group of
    batches then costs a handful of round trips instead of a score.
    """
    if not is_postgresql(conn):
        return _run_on_sqlite(conn, statements)
    raw: psycopg.Connection[Row] = conn.connection.driver_connection  # type: ignore[assignment]
    cursors: list[psycopg.Cursor[Row] | None] = []
    try:
        with raw.pipeline():
            for each in statements:
                # The text is made here, of names of the schema; values travel beside it.
                query = None if each is None else raw.execute(each.text.encode(), each.values)
                cursors.append(query)
    except psycopg.Error as error:
        # SQLAlchemy is passed by, so its callers get their exception from here.
        raise DBAPIError.instance(None, None, error, psycopg.Error, dialect=conn.dialect) from error
    return [cursor.fetchall() if cursor is not None and cursor.description else () for cursor in cursors]


def among(conn: Connection, query: str, column: str, values: Iterable[str], end: str = "") -> Statement | None:
    """The rows of `query` whose column is among the values, in the order that `end` asks for."""
    names = sorted(values)
    return Statement(f"{query} WHERE {_among(conn, column)} {end}", (as_json(names),)) if names else None


def locked_among(conn: Connection, query: str, column: str, values: Iterable[str]) -> Statement | None:
    """As `among`, in order of the column and with every row locked; on SQLite the transaction is the lock."""
    lock = " FOR UPDATE" if is_postgresql(conn) else ""
    return among(conn, query, column, values, f"ORDER BY {column}{lock}")


def inserted(conn: Connection, table: Table, rows: Iterable[Row], *, unless_there: bool = False) -> Statement | None:
    """Inserts rows that have the table's columns; `unless_there` passes over those whose key is taken."""
    end = " ON CONFLICT DO NOTHING" if unless_there else ""
    text = _insert(table, is_postgresql(conn)) + end
    return _of_rows(conn, text, tuple(table.c.keys()), list(rows))


def updated(
    conn: Connection, table: Table, keys: Sequence[str], columns: Sequence[str], rows: list[Row]
) -> Statement | None:
    """Sets columns of the rows with these keys; each row has the keys' values first, then the columns'."""
    text = _update(table, tuple(keys), tuple(columns), is_postgresql(conn))
    return _of_rows(conn, text, (*keys, *columns), rows)


def deleted_among(conn: Connection, table: Table, column: str, values: Iterable[str]) -> Statement | None:
    """Deletes the rows whose column is among the values."""
    return among(conn, f"DELETE FROM {table.name}", column, values)  # noqa: S608


def as_json(values: Sequence[Any]) -> str:
    """Values as `json_each` and `json_to_recordset` take them."""
    return msgspec.json.encode(values).decode()


def _among(conn: Connection, column: str) -> str:
    if is_postgresql(conn):
        # An array tells the planner to use the column's index, once for each value.
        return f"{column} = ANY(ARRAY(SELECT json_array_elements_text(%s::json)))"
    return f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608


def _of_rows(conn: Connection, text: str, names: tuple[str, ...], rows: list[Row]) -> Statement | None:
    if not rows:
        return None
    if is_postgresql(conn):
        # The driver quotes arrays of text item by item, which took more time than all the rest of a batch.
        named = _named(names)
        return Statement(text, (as_json([named(*row) for row in rows]),))
    return Statement(text, (as_json(rows),))


@cache
def _named(names: tuple[str, ...]) -> Callable[..., msgspec.Struct]:
    """Makes values that encode as an object with these names: a dictionary for each row took longer than to send it."""
    return msgspec.defstruct("Named", [str(name) for name in names], gc=False)


def _run_on_sqlite(conn: Connection, statements: Iterable[Statement | None]) -> list[Sequence[Row]]:
    raw: sqlite3.Connection = conn.connection.driver_connection  # type: ignore[assignment]
    found: list[Sequence[Row]] = []
    try:
        for each in statements:
            if each is None:
                found.append(())
            elif _is_question(each.text):
                (rows,) = raw.execute(_as_one_value(raw, each), each.values).fetchone()
                found.append(_ROWS.decode(rows))
            else:
                raw.execute(each.text, each.values)
                found.append(())
    except sqlite3.Error as error:
        # SQLAlchemy is passed by, so its callers get their exception from here.
        raise DBAPIError.instance(None, None, error, sqlite3.Error, dialect=conn.dialect) from error
    return found


def _is_question(text: str) -> bool:
    return text.lstrip().startswith(("SELECT", "WITH"))


# The questions of this package by their text: a dozen.
_ONE_VALUE: Final[dict[str, str]] = {}


def _as_one_value(raw: sqlite3.Connection, question: Statement) -> str:
    """The question, answered with one JSON array of rows."""
    asked = _ONE_VALUE.get(question.text)
    if asked is None:
        columns = raw.execute(f"SELECT * FROM ({question.text}) LIMIT 0", question.values).description  # noqa: S608
        names = ", ".join(f"c{at}" for at in range(len(columns)))
        asked = f"WITH q ({names}) AS ({question.text}) SELECT json_group_array(json_array({names})) FROM q"  # noqa: S608
        _ONE_VALUE[question.text] = asked
    return asked


@cache
def _insert(table: Table, for_postgresql: bool) -> str:
    names = ", ".join(column.name for column in table.c)
    if for_postgresql:
        return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_record_set(table, table.c.keys())}"  # noqa: S608
    values = ", ".join(f"json_extract(value, '$[{at}]')" for at in range(len(table.c)))
    # Without a condition SQLite would take what follows for the join's.
    return f"INSERT INTO {table.name} ({names}) SELECT {values} FROM json_each(?) WHERE true"  # noqa: S608


@cache
def _update(table: Table, keys: tuple[str, ...], columns: tuple[str, ...], for_postgresql: bool) -> str:
    if for_postgresql:
        changes = ", ".join(f"{name} = v.{name}" for name in columns)
        where = " AND ".join(f"t.{name} = v.{name}" for name in keys)
        values = _record_set(table, (*keys, *columns))
        return f"UPDATE {table.name} AS t SET {changes} FROM {values} WHERE {where}"  # noqa: S608
    changes = ", ".join(
        f"{name} = json_extract(v.value, '$[{at}]')" for at, name in enumerate(columns, start=len(keys))
    )
    where = " AND ".join(f"t.{name} = json_extract(v.value, '$[{at}]')" for at, name in enumerate(keys))
    return f"UPDATE {table.name} AS t SET {changes} FROM json_each(?) AS v WHERE {where}"  # noqa: S608


def _record_set(table: Table, names: Iterable[str]) -> str:
    columns = ", ".join(f"{name} {_type(table, name)}" for name in names)
    return f"json_to_recordset(%s::json) AS v ({columns})"


def _type(table: Table, name: str) -> str:
    for kind, name_of_type in _TYPES:
        if isinstance(table.c[name].type, kind):
            return name_of_type
    raise TypeError(f"{table.name}.{name} has no type here")
