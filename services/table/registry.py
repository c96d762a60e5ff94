"""The registry in SQL: which tables there are, who sits where, which epoch and hand numbers were given.

Redis may lose its last writes; this may not. Hand numbers and epochs come from here, so that none is given twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import DBAPIError

from services.runtime.database import Database, DatabaseBusyError
from services.runtime.errors import Fault
from services.table.state import TableSettings
from services.table.wanted import Wanted

PAGE_MAX: Final = 200
WANT_SECONDS: Final = 5.0

_metadata = sa.MetaData()
_tables = sa.Table(
    "tables",
    _metadata,
    sa.Column("table_id", sa.String, primary_key=True),
    sa.Column("display_name", sa.String),
    sa.Column("rulebook", sa.String),
    sa.Column("overrides", sa.Text),
    sa.Column("settings", sa.Text),
    sa.Column("template", sa.String),
    sa.Column("currency", sa.String),
    sa.Column("created_ms", sa.BigInteger),
    sa.Column("closed_ms", sa.BigInteger),
    sa.Column("request_id", sa.String),
    sa.Column("requested_by", sa.String),
    sa.Column("request_digest", sa.String),
    sa.Column("epoch", sa.BigInteger),
    sa.Column("last_hand", sa.BigInteger),
    sa.Column("button", sa.Integer),
    sa.Column("mode", sa.String),
    sa.Column("mode_reason", sa.Text),
    sa.Column("mode_number", sa.BigInteger),
)
_sittings = sa.Table(
    "sittings",
    _metadata,
    sa.Column("sitting", sa.String, primary_key=True),
    sa.Column("table_id", sa.String),
    sa.Column("seat", sa.Integer),
    sa.Column("player", sa.String),
    sa.Column("display_name", sa.String),
    sa.Column("opened_ms", sa.BigInteger),
    sa.Column("closed_ms", sa.BigInteger),
    sa.Column("left_with_minor", sa.BigInteger),
)


_templates = sa.Table(
    "templates",
    _metadata,
    sa.Column("template_id", sa.String, primary_key=True),
    sa.Column("rulebook", sa.String),
    sa.Column("overrides", sa.Text),
    sa.Column("settings", sa.Text),
    sa.Column("currency", sa.String),
    sa.Column("spare_tables", sa.Integer),
    sa.Column("max_tables", sa.Integer),
    sa.Column("made", sa.BigInteger),
    sa.Column("request_digest", sa.String),
    sa.Column("deleted", sa.Boolean),
)


# Once for each hand, so it is made once.
_OPEN_HAND: Final = (
    sa.update(_tables)
    .where(
        _tables.c.table_id == sa.bindparam("of_table"),
        _tables.c.epoch == sa.bindparam("of_epoch"),
        sa.or_(_tables.c.last_hand == sa.bindparam("before"), _tables.c.last_hand == sa.bindparam("to_hand")),
    )
    .values(last_hand=sa.bindparam("to_hand"), button=sa.bindparam("to_button"))
)


class Template(msgspec.Struct, frozen=True):
    """A kind of table of which the house keeps some open. `made` counts the tables made of it so far."""

    template_id: str
    rulebook: str
    overrides: dict[str, int | str | bool]
    settings: TableSettings
    currency: str
    spare_tables: int
    max_tables: int
    request_digest: str
    made: int = 0
    deleted: bool = False


class TableRecord(msgspec.Struct, frozen=True):
    """A table as it was opened. `overrides` are rulebook options by name; `button` is that of the last hand, or 0."""

    table_id: str
    display_name: str
    rulebook: str
    overrides: dict[str, int | str | bool]
    settings: TableSettings
    template: str
    currency: str
    created_ms: int
    closed_ms: int | None
    epoch: int
    last_hand: int
    button: int
    wanted: Wanted


class Sitting(msgspec.Struct, frozen=True):
    """One stay of one player in one seat; its id names the stack account."""

    sitting: str
    seat: int
    player: str
    display_name: str


class NewTable(msgspec.Struct, frozen=True):
    """What a table is opened with, by whom, and the id and digest of the request."""

    table_id: str
    display_name: str
    rulebook: str
    overrides: Mapping[str, int | str | bool]
    settings: TableSettings
    currency: str
    request_id: str
    requested_by: str
    request_digest: str
    template: str = ""


class Registry:
    """Tables, sittings, epochs and hand numbers of the whole house."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def create_table(self, new: NewTable, now_ms: int) -> TableRecord:
        """Opens a table, or returns the one that the same request opened. Raises `ACTION_CONFLICT`."""
        return await self._db.write(_create_table, new, now_ms)

    async def get_table(self, table_id: str) -> TableRecord:
        """One table, closed ones too. Raises `TABLE_NOT_FOUND`."""
        return await self._db.read(_get_table, table_id)

    async def list_tables(
        self, after: str, limit: int, *, rulebook: str = "", show_closed: bool = False
    ) -> list[TableRecord]:
        """Tables by id, beyond `after`, at most `limit`."""
        return await self._db.read(_list_tables, after, limit, rulebook, show_closed)

    async def create_template(self, template: Template) -> Template:
        """Makes a template, or returns the one that the same request made. Raises `ACTION_CONFLICT`."""
        return await self._db.write(_create_template, template)

    async def list_templates(self, after: str, limit: int, *, show_deleted: bool = False) -> list[Template]:
        """Templates by id, beyond `after`, at most `limit`."""
        return await self._db.read(_list_templates, after, limit, show_deleted)

    async def delete_template(self, template_id: str) -> None:
        """Ends a template; again is no change. Raises `TEMPLATE_NOT_FOUND`."""
        await self._db.write(_delete_template, template_id)

    async def count_made(self, template_id: str, made: int) -> bool:
        """Takes the next number of a template's tables; False if another process took it."""
        return await self._db.write(_count_made, template_id, made)

    async def tables_of(self, template_id: str, limit: int) -> list[TableRecord]:
        """Open tables of a template, by id."""
        return await self._db.read(_tables_of, template_id, limit)

    async def open_hand(self, table_id: str, epoch: int, hand: int, button: int) -> bool:
        """Gives out the next hand number; the same again is no change. False if the registry is ahead of the caller."""
        return await self._db.write(_open_hand, table_id, epoch, hand, button)

    async def raise_epoch(self, table_id: str) -> int:
        """The next epoch of the table; every older one is over."""
        return await self._db.write(_raise_epoch, table_id)

    async def want(self, table_id: str, wanted: Wanted, over: int) -> bool:
        """Keeps what is wanted of a table, in place of any wish up to number `over`; the same again is no change.

        False if a newer one is kept. Raises `SERVICE_UNAVAILABLE`, and may have kept it all the same.
        """
        try:
            async with asyncio.timeout(WANT_SECONDS):
                return await self._db.write(_want, table_id, wanted, over)
        except (DBAPIError, DatabaseBusyError, TimeoutError) as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' registry is out of reach") from error

    async def open_sitting(self, table_id: str, epoch: int, sitting: Sitting, now_ms: int) -> None:
        """Enters a player into a seat; the same again is no change.

        Raises `SEAT_TAKEN`, `ALREADY_SEATED` or `STALE_EPOCH`.
        """
        await self._db.write(_open_sitting, table_id, epoch, sitting, now_ms)

    async def close_sitting(self, sitting: str, left_with_minor: int | None, now_ms: int) -> None:
        """Ends a sitting; again is no change."""
        await self._db.write(_close_sitting, sitting, left_with_minor, now_ms)

    async def open_sittings(self, table_id: str) -> list[Sitting]:
        """Who sits at the table, by seat."""
        return await self._db.read(_open_sittings, table_id)

    async def left_with(self, table_id: str, player: str, since_ms: int) -> int:
        """The stack that a player last left the table with since then, or 0 (RULES, section 6: re-entry)."""
        return await self._db.read(_left_with, table_id, player, since_ms)

    async def close_table(self, table_id: str, now_ms: int) -> None:
        """Says that a table is over; again is no change."""
        await self._db.write(_close_table, table_id, now_ms)


def _create_table(conn: Connection, new: NewTable, now_ms: int) -> TableRecord:
    same_request = sa.and_(_tables.c.requested_by == new.requested_by, _tables.c.request_id == new.request_id)
    row = conn.execute(sa.select(_tables).where(same_request)).mappings().first()
    if row is not None:
        if row["request_digest"] != new.request_digest:
            raise Fault("ACTION_CONFLICT", f"request {new.request_id!r} opened another table", field="request_id")
        return _record(row)
    if conn.execute(sa.select(_tables.c.table_id).where(_tables.c.table_id == new.table_id)).first():
        raise Fault("ACTION_CONFLICT", f"there is a table {new.table_id!r} already", field="table_id")
    values: dict[str, Any] = {
        "table_id": new.table_id,
        "display_name": new.display_name,
        "rulebook": new.rulebook,
        "overrides": json.dumps(dict(new.overrides), sort_keys=True),
        "settings": dump_settings(new.settings),
        "template": new.template,
        "currency": new.currency,
        "created_ms": now_ms,
        "closed_ms": None,
        "request_id": new.request_id,
        "requested_by": new.requested_by,
        "request_digest": new.request_digest,
        "epoch": 1,
        "last_hand": 0,
        "button": 0,
    }
    conn.execute(sa.insert(_tables).values(values))
    return _get_table(conn, new.table_id)


def _get_table(conn: Connection, table_id: str) -> TableRecord:
    row = conn.execute(sa.select(_tables).where(_tables.c.table_id == table_id)).mappings().first()
    if row is None:
        raise Fault("TABLE_NOT_FOUND", f"there is no table {table_id!r}", table=f"tables/{table_id}")
    return _record(row)


def _list_tables(conn: Connection, after: str, limit: int, rulebook: str, show_closed: bool) -> list[TableRecord]:
    query = sa.select(_tables).where(_tables.c.table_id > after).order_by(_tables.c.table_id).limit(limit)
    if rulebook:
        query = query.where(_tables.c.rulebook == rulebook)
    if not show_closed:
        query = query.where(_tables.c.closed_ms.is_(None))
    return [_record(row) for row in conn.execute(query).mappings()]


def _create_template(conn: Connection, new: Template) -> Template:
    query = sa.select(_templates).where(_templates.c.template_id == new.template_id)
    row = conn.execute(query).mappings().first()
    if row is not None:
        if row["request_digest"] != new.request_digest or row["deleted"]:
            raise Fault("ACTION_CONFLICT", f"there is a template {new.template_id!r} already", field="template_id")
        return _template(row)
    values: dict[str, Any] = {
        **{name: getattr(new, name) for name in new.__struct_fields__},
        "overrides": json.dumps(new.overrides, sort_keys=True),
        "settings": dump_settings(new.settings),
    }
    conn.execute(sa.insert(_templates).values(values))
    return new


def _list_templates(conn: Connection, after: str, limit: int, show_deleted: bool) -> list[Template]:
    query = sa.select(_templates).where(_templates.c.template_id > after).order_by(_templates.c.template_id)
    if not show_deleted:
        query = query.where(_templates.c.deleted.is_(False))
    return [_template(row) for row in conn.execute(query.limit(limit)).mappings()]


def _delete_template(conn: Connection, template_id: str) -> None:
    this = _templates.c.template_id == template_id
    if conn.execute(sa.update(_templates).where(this).values(deleted=True)).rowcount == 0:
        raise Fault("TEMPLATE_NOT_FOUND", f"there is no template {template_id!r}", template=template_id)


def _count_made(conn: Connection, template_id: str, made: int) -> bool:
    this = sa.and_(_templates.c.template_id == template_id, _templates.c.made == made)
    return conn.execute(sa.update(_templates).where(this).values(made=made + 1)).rowcount == 1


def _tables_of(conn: Connection, template_id: str, limit: int) -> list[TableRecord]:
    query = sa.select(_tables).where(_tables.c.template == template_id, _tables.c.closed_ms.is_(None))
    return [_record(row) for row in conn.execute(query.order_by(_tables.c.table_id).limit(limit)).mappings()]


def _template(row: RowMapping) -> Template:
    return Template(
        template_id=row["template_id"],
        rulebook=row["rulebook"],
        overrides=json.loads(row["overrides"]),
        settings=load_settings(row["settings"]),
        currency=row["currency"],
        spare_tables=row["spare_tables"],
        max_tables=row["max_tables"],
        request_digest=row["request_digest"],
        made=row["made"],
        deleted=bool(row["deleted"]),
    )


def _open_hand(conn: Connection, table_id: str, epoch: int, hand: int, button: int) -> bool:
    opened = conn.execute(
        _OPEN_HAND,
        {"of_table": table_id, "of_epoch": epoch, "before": hand - 1, "to_hand": hand, "to_button": button},
    )
    return opened.rowcount == 1


def _raise_epoch(conn: Connection, table_id: str) -> int:
    conn.execute(sa.update(_tables).where(_tables.c.table_id == table_id).values(epoch=_tables.c.epoch + 1))
    return _get_table(conn, table_id).epoch


def _want(conn: Connection, table_id: str, wanted: Wanted, over: int) -> bool:
    values = {"mode": wanted.mode, "mode_reason": wanted.reason, "mode_number": wanted.number}
    is_older = sa.or_(_tables.c.mode_number <= over, sa.and_(*(_tables.c[name] == values[name] for name in values)))
    this = sa.and_(_tables.c.table_id == table_id, is_older)
    return conn.execute(sa.update(_tables).where(this).values(values)).rowcount == 1


def _open_sitting(conn: Connection, table_id: str, epoch: int, sitting: Sitting, now_ms: int) -> None:
    if _get_table(conn, table_id).epoch != epoch:
        raise Fault("STALE_EPOCH", f"epoch {epoch} of table {table_id} is over", epoch=str(epoch))
    same = sa.select(_sittings.c.sitting).where(_sittings.c.sitting == sitting.sitting)
    if conn.execute(same).first():
        return
    for row in conn.execute(_of_table(table_id)).mappings():
        if row["player"] == sitting.player:
            raise Fault("ALREADY_SEATED", f"{sitting.player} sits in seat {row['seat']}", seat=str(row["seat"]))
        if row["seat"] == sitting.seat:
            raise Fault("SEAT_TAKEN", f"seat {sitting.seat} is taken", seat=str(sitting.seat))
    conn.execute(
        sa.insert(_sittings).values(
            sitting=sitting.sitting,
            table_id=table_id,
            seat=sitting.seat,
            player=sitting.player,
            display_name=sitting.display_name,
            opened_ms=now_ms,
            closed_ms=None,
            left_with_minor=None,
        )
    )


def _close_sitting(conn: Connection, sitting: str, left_with_minor: int | None, now_ms: int) -> None:
    conn.execute(
        sa.update(_sittings)
        .where(_sittings.c.sitting == sitting, _sittings.c.closed_ms.is_(None))
        .values(closed_ms=now_ms, left_with_minor=left_with_minor)
    )


def _open_sittings(conn: Connection, table_id: str) -> list[Sitting]:
    rows = conn.execute(_of_table(table_id).order_by(_sittings.c.seat)).mappings()
    return [Sitting(row["sitting"], row["seat"], row["player"], row["display_name"]) for row in rows]


def _of_table(table_id: str) -> sa.Select[Any]:
    return sa.select(_sittings).where(_sittings.c.table_id == table_id, _sittings.c.closed_ms.is_(None))


def _left_with(conn: Connection, table_id: str, player: str, since_ms: int) -> int:
    query = (
        sa.select(_sittings.c.left_with_minor)
        .where(
            _sittings.c.table_id == table_id,
            _sittings.c.player == player,
            _sittings.c.closed_ms >= since_ms,
            _sittings.c.left_with_minor.is_not(None),
        )
        .order_by(_sittings.c.closed_ms.desc())
        .limit(1)
    )
    return int(conn.execute(query).scalar() or 0)


def _close_table(conn: Connection, table_id: str, now_ms: int) -> None:
    conn.execute(
        sa.update(_tables).where(_tables.c.table_id == table_id, _tables.c.closed_ms.is_(None)).values(closed_ms=now_ms)
    )


def _record(row: RowMapping) -> TableRecord:
    return TableRecord(
        table_id=row["table_id"],
        display_name=row["display_name"],
        rulebook=row["rulebook"],
        overrides=json.loads(row["overrides"]),
        settings=load_settings(row["settings"]),
        template=row["template"],
        currency=row["currency"],
        created_ms=row["created_ms"],
        closed_ms=row["closed_ms"],
        epoch=row["epoch"],
        last_hand=row["last_hand"],
        button=row["button"],
        wanted=Wanted(row["mode"], row["mode_reason"], row["mode_number"]),
    )


def dump_settings(settings: TableSettings) -> str:
    """Settings as the registry stores them."""
    return msgspec.json.encode(settings).decode()


def load_settings(text: str) -> TableSettings:
    """Settings that `dump_settings` wrote; what a later version added has its default."""
    return msgspec.json.decode(text, type=TableSettings)
