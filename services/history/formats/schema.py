"""`python -m services.history.formats.schema`: writes docs/history.schema.json, the schema of the structured format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from services.history.formats.structured import schema

SCHEMA_FILE: Final = Path(__file__).resolve().parents[3] / "docs" / "history.schema.json"


def main() -> None:
    """Writes the schema that follows from the protos."""
    SCHEMA_FILE.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
