"""Work on stored hands that nobody waits for: retention, a file for each day, and a check of rows against records."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from fivedraw.history.v1 import history_service_pb2 as pb

from services.history import queries, store
from services.history.reading import HandReader
from services.history.record import RecordBrokenError, decode
from services.history.settings import HistorySettings
from services.history.summary import summarise
from services.runtime import telemetry
from services.runtime.auth import Identity
from services.runtime.clock import Clock
from services.runtime.database import Database

DELETE_BATCHES_MAX: Final = 1_000
AUDITED_ROWS: Final = 1_000
MS_OF_HOUR: Final = 3_600_000
MS_OF_DAY: Final = 24 * MS_OF_HOUR

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
# The house reads as a service does: what was shown to everybody.
_PUBLIC: Final = Identity("service", "history")

_DELETED: Final = telemetry.counter("fivedraw_history_deleted_total", "Hands deleted past their retention.")
_EXPORTED: Final = telemetry.counter("fivedraw_history_exported_total", "Hands written to the files of days.")
_AUDITED: Final = telemetry.counter("fivedraw_history_audited_total", "Rows compared with their records.", ("outcome",))


class Upkeep:
    """Retention, files of days and audits, each to be run by a task of its own; all may be run again at any time."""

    def __init__(self, database: Database, reader: HandReader, clock: Clock, settings: HistorySettings) -> None:
        self._database = database
        self._reader = reader
        self._clock = clock
        self._settings = settings
        self._log = telemetry.logger("history.upkeep")

    async def delete_old_hands(self) -> int:
        """Deletes hands past their retention, in small transactions; returns how many."""
        if not self._settings.history_retention_days:
            return 0
        before = self._clock.now_ms() - self._settings.history_retention_days * MS_OF_DAY
        deleted = 0
        for _ in range(DELETE_BATCHES_MAX):
            batch = await self._database.write(store.delete_before, before)
            deleted += batch
            _DELETED.inc(batch)
            if batch < store.DELETE_BATCH_MAX:
                break
        return deleted

    async def export_day(self, day: str = "") -> str:
        """Writes all hands that ended on a day (UTC, `YYYY-MM-DD`; yesterday if empty), as everybody may see them.

        JSON lines, in `history_exports_folder`; a day that is written stays as it is. Returns the file's name. Raises
        `ValueError` for what is no day, `OSError` where the file cannot be written.
        """
        begin = self._beginning_of(day)
        path = self._settings.history_exports_folder / f"{begin:%Y-%m-%d}.jsonl"
        if path.exists():
            return path.name
        request = pb.ExportHandsRequest(format=pb.HAND_FORMAT_JSON)
        request.from_time.FromDatetime(begin)
        request.to_time.FromDatetime(begin + timedelta(days=1))
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        fresh = path.with_suffix(".part")
        await asyncio.to_thread(fresh.write_text, "", encoding="utf-8")
        async for piece in self._reader.export_all(_PUBLIC, request):
            await asyncio.to_thread(_append, fresh, piece.text)
            _EXPORTED.inc(piece.hands)
        await asyncio.to_thread(fresh.replace, path)
        return path.name

    async def audit_rows(self) -> int:
        """Compares this hour's share of the rows with their records; returns how many differ.

        The shares follow each other hour by hour, so that all rows come round.
        """
        rows = await self._database.read(queries.rows_of_share, self._clock.now_ms() // MS_OF_HOUR, AUDITED_ROWS)
        broken = 0
        for row in rows:
            try:
                summary = summarise(row.key, decode(row.record))
                sound = (summary.end_ms, summary.pot_minor, summary.outcome) == (row.end_ms, row.pot_minor, row.outcome)
            except RecordBrokenError:
                sound = False
            _AUDITED.labels("sound" if sound else "broken").inc()
            if not sound:
                broken += 1
                self._log.error("row and record differ", hand=row.key.name)
            await asyncio.sleep(0)
        return broken

    def _beginning_of(self, day: str) -> datetime:
        if not day:
            today = datetime.fromtimestamp(self._clock.now_ms() // 1000, UTC).replace(hour=0, minute=0, second=0)
            return today - timedelta(days=1)
        if _DAY.fullmatch(day) is None:
            raise ValueError(f"{day!r} is no day of the form YYYY-MM-DD")
        return datetime.fromisoformat(day).replace(tzinfo=UTC)


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)
