"""The page of features names a test for each, and every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "table-features.md"
TEST = re.compile(r"`(test_\w+)`")


def rows() -> list[list[str]]:
    """The cells of each feature's line."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


def test_every_feature_names_a_test_that_is_there() -> None:
    features = [row for row in rows() if row[1] != "test"]
    written = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(features) > 40
    assert [feature for feature, tests in features if not TEST.findall(tests)] == []
    named = {name for _, tests in features for name in TEST.findall(tests)}
    assert sorted(named - written) == []
