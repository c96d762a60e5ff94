"""Templates: kinds of tables of which the house keeps some open, and closes what nobody needs."""

from __future__ import annotations

from typing import Final

from fivedraw.table.v1 import table_pb2

from services.runtime.errors import Fault
from services.table import asks
from services.table.house import House
from services.table.registry import NewTable, Template
from services.table.state import Request

HOUSE: Final = "operators/house"
TABLES_MAX: Final = 1_000
PAGE: Final = 100
CLOSE_SECONDS: Final = 8.0


class TemplateKeeper:
    """Opens and closes the tables of templates; every process may run one, the registry keeps them apart."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def tend(self) -> None:
        """One round over all templates. Raises `Fault` or `StoreUnavailableError`; the next round goes on."""
        after = ""
        while True:
            page = await self._house.parts.registry.list_templates(after, PAGE, show_deleted=True)
            for template in page:
                await self._tend_one(template)
            if len(page) < PAGE:
                return
            after = page[-1].template_id

    async def _tend_one(self, template: Template) -> None:
        records = await self._house.parts.registry.tables_of(template.template_id, TABLES_MAX)
        rows = await self._house.store.load_lobby([record.table_id for record in records])
        tables = [table_pb2.Table.FromString(row) for row in rows if row]
        spare = sum(table.seats_free > 0 for table in tables)
        empty = [table for table in tables if not table.seats_taken and table.state == table_pb2.TABLE_STATE_OPEN]
        if template.deleted:
            for table in empty:
                await self._close(table.name)
        elif spare < template.spare_tables and len(records) < template.max_tables:
            await self._open(template)
        elif spare > template.spare_tables and len(empty) > 1:
            # One table too many, and nobody at it; the one opened last goes first.
            await self._close(empty[-1].name)

    async def _open(self, template: Template) -> None:
        if not await self._house.parts.registry.count_made(template.template_id, template.made):
            return
        table_id = f"{template.template_id}-{template.made + 1}"
        new = NewTable(
            table_id=table_id,
            display_name=table_id,
            rulebook=template.rulebook,
            overrides=template.overrides,
            settings=template.settings,
            currency=template.currency,
            request_id=f"template:{table_id}",
            requested_by=HOUSE,
            request_digest=template.request_digest,
            template=template.template_id,
        )
        await self._house.open_table(new)

    async def _close(self, name: str) -> None:
        table_id = name.removeprefix("tables/")
        host = await self._house.host(table_id)
        request = Request(HOUSE, f"close:{table_id}", table_id.encode()[:16])
        try:
            await host.ask(asks.Close(request, "no player needs this table"), CLOSE_SECONDS)
        except Fault as fault:
            if fault.reason != "TABLE_CLOSED":
                raise
