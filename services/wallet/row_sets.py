"""Whole sets of rows in one statement each, in the dialect of either database.

The text of a statement does not depend on how many rows it is about, so it is planned and prepared once: PostgreSQL
gets the values as JSON, SQLite as JSON or row by row. Names of tables and columns come from `schema`, never from a
caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from sqlalchemy import BigInteger, Boolean, Connection, Integer, SmallInteger, Table, Text

Row = tuple[Any, ...]

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


def select_among(conn: Connection, query: str, column: str, values: Sequence[str], end: str = "") -> Sequence[Row]:
    """The rows of `query` whose column is among the values, in the order that `end` asks for."""
    if not values:
        return ()
    return conn.exec_driver_sql(f"{query} WHERE {_among(conn, column)} {end}", (as_json(values),)).all()


def lock_among(conn: Connection, query: str, column: str, values: Sequence[str]) -> Sequence[Row]:
    """As `select_among`, in order of the column and with every row locked; on SQLite the transaction is the lock."""
    return select_among(
        conn, query, column, values, f"ORDER BY {column} FOR UPDATE" if is_postgresql(conn) else f"ORDER BY {column}"
    )


def insert_rows(conn: Connection, table: Table, rows: Iterable[Row], *, unless_there: bool = False) -> None:
    """Inserts rows that have the table's columns; `unless_there` passes over those whose key is taken."""
    values = list(rows)
    if not values:
        return
    statement = _insert(table, is_postgresql(conn))
    if unless_there:
        statement += " ON CONFLICT DO NOTHING"
    _execute(conn, statement, tuple(table.c.keys()), values)


def update_rows(conn: Connection, table: Table, keys: Sequence[str], columns: Sequence[str], rows: list[Row]) -> None:
    """Sets columns of the rows with these keys; each row has the keys' values first, then the columns'."""
    if rows:
        names = (*keys, *columns)
        _execute(conn, _update(table, tuple(keys), tuple(columns), is_postgresql(conn)), names, rows)


def delete_among(conn: Connection, table: Table, column: str, values: Sequence[str]) -> None:
    """Deletes the rows whose column is among the values."""
    if not values:
        return
    conn.exec_driver_sql(f"DELETE FROM {table.name} WHERE {_among(conn, column)}", (as_json(values),))  # noqa: S608


def as_json(values: Sequence[Any]) -> str:
    """Values as `json_each` and `json_to_recordset` take them."""
    return msgspec.json.encode(values).decode()


def _among(conn: Connection, column: str) -> str:
    if is_postgresql(conn):
        # An array tells the planner to use the column's index, once for each value.
        return f"{column} = ANY(ARRAY(SELECT json_array_elements_text(%s::json)))"
    return f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608


def _execute(conn: Connection, statement: str, names: tuple[str, ...], rows: list[Row]) -> None:
    if is_postgresql(conn):
        # The driver quotes arrays of text item by item, which took more time than all the rest of a batch.
        conn.exec_driver_sql(statement, (as_json([dict(zip(names, row, strict=True)) for row in rows]),))
    else:
        conn.exec_driver_sql(statement, rows)


@cache
def _insert(table: Table, for_postgresql: bool) -> str:
    names = ", ".join(column.name for column in table.c)
    if for_postgresql:
        return f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {_record_set(table, table.c.keys())}"  # noqa: S608
    marks = ", ".join("?" for _ in table.c)
    return f"INSERT INTO {table.name} ({names}) VALUES ({marks})"  # noqa: S608


@cache
def _update(table: Table, keys: tuple[str, ...], columns: tuple[str, ...], for_postgresql: bool) -> str:
    if for_postgresql:
        changes = ", ".join(f"{name} = v.{name}" for name in columns)
        where = " AND ".join(f"t.{name} = v.{name}" for name in keys)
        values = _record_set(table, (*keys, *columns))
        return f"UPDATE {table.name} AS t SET {changes} FROM {values} WHERE {where}"  # noqa: S608
    # Numbered marks let the keys come first in a row although they stand last in the statement.
    changes = ", ".join(f"{name} = ?{at}" for at, name in enumerate(columns, start=len(keys) + 1))
    where = " AND ".join(f"{name} = ?{at}" for at, name in enumerate(keys, start=1))
    return f"UPDATE {table.name} SET {changes} WHERE {where}"  # noqa: S608


def _record_set(table: Table, names: Iterable[str]) -> str:
    columns = ", ".join(f"{name} {_type(table, name)}" for name in names)
    return f"json_to_recordset(%s::json) AS v ({columns})"


def _type(table: Table, name: str) -> str:
    for kind, name_of_type in _TYPES:
        if isinstance(table.c[name].type, kind):
            return name_of_type
    raise TypeError(f"{table.name}.{name} has no type here")
