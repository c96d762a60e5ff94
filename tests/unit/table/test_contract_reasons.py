"""The reasons that the contract names are those that the house gives."""

from __future__ import annotations

import re
from pathlib import Path

from services.runtime.errors import REASONS

ROOT = Path(__file__).parents[3]
# In comments of the contract: `STATUS (REASON, REASON)`.
_NAMED = re.compile(r"\b[A-Z]+(?:_[A-Z]+)* \(([A-Z][A-Z_]+(?:[,:][^()]*)?)\)")
_REASON = re.compile(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b")


def test_the_contract_names_only_reasons_of_the_registry() -> None:
    unknown = set()
    for proto in (ROOT / "proto").rglob("*.proto"):
        comments = re.sub(r"\s*\n\s*//", " ", proto.read_text())
        for match in _NAMED.finditer(comments):
            unknown |= {f"{proto.name}: {name}" for name in _REASON.findall(match[1]) if name not in REASONS}
    assert unknown == set()
