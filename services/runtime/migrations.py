"""Schema revisions: each service's Alembic files, run forward under a lock when the service starts.

Every service has a folder of its own and a version table of its own, so that several may share one database. In a
checkout the folders lie under `deploy/migrations`; an installed package is told where they are by its settings.
"""

from __future__ import annotations

import threading
import zlib
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, text

# Alembic keeps the running migration in module globals, so one process runs one at a time.
_ONE_AT_A_TIME: Final = threading.Lock()

_ADVISORY_NAMESPACE: Final = 0x66697665  # "five"


class MigrationError(RuntimeError):
    """The database cannot be brought to the revision that this build needs; the message says why."""


def folder_of(service: str, folder: Path | None = None) -> Path:
    """The folder of a service's revisions; `folder` overrides where all services' revisions are."""
    root = folder or _default_folder()
    revisions = root / service
    if not revisions.is_dir():
        raise MigrationError(f"no migrations for {service!r} under {root}")
    return revisions


def upgrade(engine: Engine, service: str, folder: Path | None = None) -> None:
    """Runs the service's revisions up to the newest one. Raises `MigrationError`; the database is then unchanged."""
    revisions = folder_of(service, folder)
    version_table = f"alembic_version_{service}"
    config = Config()
    # Alembic reads its options through ConfigParser, to which a percent sign is special.
    config.set_main_option("script_location", str(revisions.parent).replace("%", "%%"))
    config.set_main_option("version_locations", str(revisions).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    script = ScriptDirectory.from_config(config)
    if engine.dialect.name == "postgresql":
        # A serializable transaction would keep the snapshot from before the wait for the lock.
        engine = engine.execution_options(isolation_level="READ COMMITTED")
    with _ONE_AT_A_TIME, engine.begin() as conn:
        if engine.dialect.name == "postgresql":
            # Held until the commit, so that whoever waits for it sees the finished schema.
            conn.execute(
                text("SELECT pg_advisory_xact_lock(:namespace, :service)"),
                {"namespace": _ADVISORY_NAMESPACE, "service": zlib.crc32(service.encode()) & 0x7FFFFFFF},
            )
        config.attributes["connection"] = conn
        config.attributes["version_table"] = version_table
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise MigrationError(f"{service}: {error}") from error
        context = MigrationContext.configure(conn, opts={"version_table": version_table})
        found, wanted = set(context.get_current_heads()), set(script.get_heads())
        if found != wanted:
            raise MigrationError(f"{service}: the database is at {sorted(found)}, this build needs {sorted(wanted)}")


def _default_folder() -> Path:
    folder = Path(__file__).resolve().parents[2] / "deploy" / "migrations"
    if not folder.is_dir():
        raise MigrationError("no migrations beside the package; set FIVEDRAW_MIGRATIONS")
    return folder
