"""The JavaScript verifier, run in a Node that comes with pip: that of Playwright, which is in the tests' set anyway."""

from __future__ import annotations

import subprocess
from pathlib import Path

import playwright

NODE = Path(playwright.__file__).parent / "driver" / "node"
VERIFIER = Path(__file__).parents[3] / "clients" / "verifier" / "verify.js"
SECONDS_MAX = 120


def run_node(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Node with these words behind it and this text on its standard input."""
    return subprocess.run(
        [str(NODE), *words], input=text, capture_output=True, text=True, check=False, timeout=SECONDS_MAX
    )


def verify_in_javascript(text: str) -> list[str]:
    """The lines that `node verify.js -` says of a file; the last one counts what was proved, not proved and failed."""
    done = run_node(str(VERIFIER), "-", text=text)
    lines = done.stdout.splitlines()
    assert lines, done.stderr
    assert done.returncode == (0 if lines[-1].endswith(" 0 failed") else 1)
    return lines
