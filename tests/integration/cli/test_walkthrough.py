"""The commands of docs/players.md, run as they stand: a client that knows nothing but what reflection tells."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from google.rpc import error_details_pb2

from tests.embedded import embedded_house

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "players.md"
SCRIPT_SECONDS = 120

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script_of(page: str) -> str:
    """All shell commands of the page's walkthrough, in order."""
    section = page.partition("## A whole hand from the shell")[2].partition("\n## ")[0]
    return "\n".join(_BLOCK.findall(section))


def reasons_in(told: str) -> set[str]:
    """The reasons of all ErrorInfo details, which `buf` prints as base64."""
    infos = [base64.b64decode(f"{value}==") for value in re.findall(r'"value": "([\w+/]+)"', told)]
    return {error_details_pb2.ErrorInfo.FromString(info).reason for info in infos}


@pytest.mark.timeout(300)
def test_a_client_made_from_reflection_alone_plays_a_hand(tmp_path: Path):
    with embedded_house(tmp_path / "house", "--tables", "0") as house:
        script = script_of(PAGE.read_text())
        for offset in (0, 2, 3):
            script = script.replace(f":740{offset}", f":{house.port_base + offset}")
        script = script.replace("DATA=.data", f"DATA={house.folder.root}")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        # Refusals are shown on purpose, so only the last command's status is the script's.
        done = subprocess.run(
            ["bash", "-u", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
        )
        summary = house.end()

    told = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, told
    assert "fivedraw.table.v1.TableService/SubmitAction" in done.stdout
    assert "refused: it is not this player's turn" in done.stdout
    assert {"NOT_YOUR_TURN", "UNAUTHENTICATED"} <= reasons_in(done.stderr)
    assert "refused: no token, no view" in done.stdout
    events = (tmp_path / "alice.events").read_text()
    assert '"yourCards"' in events
    assert '"handEnded"' in events
    # A blind of 5 went from one to the other, and everything else is back in cash.
    cash = int(re.search(r'"cash":\s*\[\s*{\s*"currency":\s*"EUR",\s*"amountMinor":\s*"(\d+)"', done.stdout)[1])
    assert cash in {100_000 - 5, 100_000 + 5}, told
    assert summary["faults"] == []
