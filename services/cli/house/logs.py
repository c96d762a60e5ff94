"""Counts errors in the house's log files while they grow."""

from __future__ import annotations

from pathlib import Path
from typing import Final

CHUNK_BYTES_MAX: Final = 4 * 1024 * 1024
LINES_KEPT: Final = 20
LINE_CHARACTERS_KEPT: Final = 400

_MARKS: Final = (b'"level": "error"', b'"level": "critical"', b"Traceback (most recent call last)")


class ErrorTail:
    """Reads what was added to `*.log` in a folder since the last look; files that are rotated begin anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {path: path.stat().st_size for path in folder.glob("*.log")}
        self.errors = 0
        self.last: list[str] = []

    def look(self) -> int:
        """Takes in what is new; returns the errors so far."""
        for path in sorted(self._folder.glob("*.log")):
            size = path.stat().st_size
            start = self._read.get(path, 0)
            if size < start:
                start = 0
            with path.open("rb") as log:
                log.seek(start)
                added = log.read(CHUNK_BYTES_MAX)
            # A line that is still being written is left for the next look.
            whole = added[: added.rfind(b"\n") + 1]
            self._read[path] = start + len(whole)
            self._count(path.stem, whole)
        return self.errors

    def _count(self, process: str, lines: bytes) -> None:
        for line in lines.splitlines():
            if any(mark in line for mark in _MARKS):
                self.errors += 1
                self.last.append(f"{process}: {line.decode(errors='replace')[:LINE_CHARACTERS_KEPT]}")
        del self.last[:-LINES_KEPT]
