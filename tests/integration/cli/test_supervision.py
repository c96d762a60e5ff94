"""The process manager of an embedded house, with small programs in the services' places."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.cli.house.folder import Folder
from services.cli.house.programs import Program
from services.cli.house.supervision import Supervisor

WAIT_SECONDS = 20.0

# Notes its beginning and its end, and ends on SIGTERM.
NOTING = """
import pathlib, signal, sys
notes = pathlib.Path(sys.argv[1])
def note(what):
    with notes.open("a") as file:
        file.write(f"{what} {sys.argv[2]}\\n")
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
note("began")
signal.sigwait([signal.SIGTERM])
note("ended")
"""


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < limit, "it never came to be"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that nobody has waited for yet is over.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder.at(tmp_path / "house")
    made.make()
    return made


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.touch()
    return path


@pytest.fixture
def noting(tmp_path: Path, notes: Path) -> list[Program]:
    script = tmp_path / "noting.py"
    script.write_text(NOTING)
    tether = [sys.executable, "-m", "services.cli.house.tether", sys.executable, str(script), str(notes)]
    return [Program("first", [*tether, "first"], 10), Program("second", [*tether, "second"], 20)]


@pytest.fixture
def supervisor(folder: Folder, noting: list[Program]) -> Iterator[Supervisor]:
    made = Supervisor(folder, noting)
    yield made
    made.stop()


def pids(supervisor: Supervisor) -> dict[str, int]:
    return {status.name: status.pid for status in supervisor.statuses() if status.pid}


def test_processes_stop_in_order_and_all_end(supervisor: Supervisor, notes: Path):
    supervisor.start()
    until(lambda: notes.read_text().count("began") == 2)
    assert supervisor.stop()
    assert notes.read_text().splitlines()[2:] == ["ended second", "ended first"]
    assert not supervisor.is_alive()


def test_a_process_that_is_killed_is_started_again(supervisor: Supervisor):
    supervisor.start()
    until(lambda: {status.state for status in supervisor.statuses()} == {"RUNNING"})
    before = pids(supervisor)
    os.kill(before["first"], signal.SIGKILL)
    until(lambda: pids(supervisor).get("first", before["first"]) != before["first"])
    assert pids(supervisor)["second"] == before["second"]
    assert supervisor.restarts() == {"first": 1}


def test_nothing_outlives_a_process_manager_that_is_killed(supervisor: Supervisor, folder: Folder):
    supervisor.start()
    until(lambda: len(pids(supervisor)) == 2)
    running = pids(supervisor)
    os.kill(int((folder.run / "supervisord.pid").read_text()), signal.SIGKILL)
    until(lambda: not any(is_running(pid) for pid in running.values()))


def test_nothing_outlives_the_command_that_started_it(
    folder: Folder, noting: list[Program], notes: Path, tmp_path: Path
):
    script = tmp_path / "starts_and_hangs.py"
    script.write_text(
        textwrap.dedent(f"""
        import signal
        from pathlib import Path
        from services.cli.house.folder import Folder
        from services.cli.house.programs import Program
        from services.cli.house.supervision import Supervisor
        Supervisor(Folder.at({str(folder.root)!r}), {noting!r}).start()
        signal.pause()
        """)
    )
    command = subprocess.Popen([sys.executable, str(script)])
    until(lambda: notes.read_text().count("began") == 2)
    manager = int((folder.run / "supervisord.pid").read_text())
    command.kill()
    command.wait()
    until(lambda: not is_running(manager))
    # It was told to end, and did so in order.
    assert notes.read_text().splitlines()[2:] == ["ended second", "ended first"]


def test_a_house_left_behind_is_ended_before_the_next(folder: Folder, noting: list[Program], notes: Path):
    left_behind = Supervisor(folder, noting)
    left_behind.start()
    until(lambda: notes.read_text().count("began") == 2)
    Supervisor(folder, noting).end_leftover()
    assert notes.read_text().splitlines()[2:] == ["ended second", "ended first"]
    assert left_behind.stop()
