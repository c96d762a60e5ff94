"""Transactions that a database sends away because of others: which those are, and how long to wait for the next try."""

from __future__ import annotations

import random
import sqlite3
import time
from typing import Final

from sqlalchemy.exc import DBAPIError

ATTEMPTS_MAX: Final = 12
BACKOFF_FIRST_SECONDS: Final = 0.002
BACKOFF_LAST_SECONDS: Final = 0.25

# PostgreSQL: serialization_failure, deadlock_detected, lock_not_available.
_RETRIED_SQLSTATES: Final = frozenset({"40001", "40P01", "55P03"})


class DatabaseBusyError(RuntimeError):
    """The database was busy through all attempts, or too many writes are waiting. Nothing was written."""


def is_conflict(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed when it is tried again."""
    original = error.orig
    if isinstance(original, sqlite3.OperationalError):
        return original.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(original, "sqlstate", None) in _RETRIED_SQLSTATES


def back_off(attempt: int) -> None:
    """Sleeps on the calling thread before the attempt after this one, counted from 1."""
    ceiling = min(BACKOFF_LAST_SECONDS, BACKOFF_FIRST_SECONDS * 2**attempt)
    time.sleep(random.uniform(ceiling / 2, ceiling))
