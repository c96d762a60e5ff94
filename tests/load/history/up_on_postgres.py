"""`fivedraw`, with the histories of its embedded house on the PostgreSQL that an environment variable names."""

from __future__ import annotations

import os
import sys

from services.cli.__main__ import main
from services.cli.house.folder import Folder

URL_VARIABLE = "SOAK_HISTORY_DATABASE_URL"


def database_url(folder: Folder, service: str) -> str:
    """Where a service keeps its rows."""
    if service == "history":
        return os.environ[URL_VARIABLE]
    return f"sqlite:///{folder.sql / f'{service}.sqlite'}"


if __name__ == "__main__":
    Folder.database_url = database_url  # type: ignore[method-assign]
    sys.exit(main())
