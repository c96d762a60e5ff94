"""Both verifiers over the same hands."""

from __future__ import annotations

import json

from services.deck.verification import verify_text
from tests.unit.deck.javascript import VERIFIER, run_node

# Reads one text a line, a JSON string, and prints one report a line.
RUNNER = f"""
const {{ fivedrawVerify }} = require({json.dumps(str(VERIFIER))});
const lines = require("node:fs").readFileSync(0, "utf8").split("\\n").filter(Boolean);
for (const line of lines) console.log(JSON.stringify(fivedrawVerify(JSON.parse(line))));
"""

Failures = dict[str, tuple[list[str], list[str]]]


def texts_in_javascript(texts: list[str]) -> list[dict]:
    """The JavaScript verifier's reports of these files, in order."""
    done = run_node("-e", RUNNER, text="\n".join(map(json.dumps, texts)))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_javascript(hands: list[dict]) -> list[dict]:
    """The JavaScript verifier's reports of files with one hand each, in order."""
    return texts_in_javascript([json.dumps(hand) for hand in hands])


def assert_both_fail(tampered: dict[str, dict | str]) -> Failures:
    """Runs both verifiers over all variants (hands, or texts of files); each must fail both. The failures by name."""
    texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in tampered.items()}
    other = [report["failed"] for report in texts_in_javascript(list(texts.values()))]
    mine = [verify_text(text).failed for text in texts.values()]
    assert [name for name, failed in zip(texts, mine, strict=True) if not failed] == []
    assert [name for name, failed in zip(texts, other, strict=True) if not failed] == []
    return {name: pair for name, *pair in zip(texts, mine, other, strict=True)}


def assert_both_pass(*texts: str) -> list[list[str]]:
    """Runs both verifiers over these files, which both must pass and say as much of; what is not proved, by file."""
    reports = [verify_text(text) for text in texts]
    for mine, other in zip(reports, texts_in_javascript(list(texts)), strict=True):
        assert (mine.failed, other["failed"]) == ([], [])
        assert (mine.proved, mine.not_proved) == (other["proved"], other["notProved"])
    return [report.not_proved for report in reports]
