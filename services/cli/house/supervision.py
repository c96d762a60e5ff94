"""Runs the house's processes under supervisord and asks it how they are."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import time
import xmlrpc.client
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from services.cli.house import tether
from services.cli.house.folder import Folder, FolderError
from services.cli.house.programs import Program

CALL_SECONDS: Final = 5.0
START_SECONDS: Final = 20.0
# A process that dies within a second of its start is tried again after 1, 2, 3 … s, this often.
START_RETRIES: Final = 8
LOG_BYTES_MAX: Final = "20MB"
LOG_BACKUPS: Final = 2
POLL_SECONDS: Final = 0.05

_SPAWNED: Final = re.compile(r"spawned: '([^']+)' with pid (\d+)")
_FAULTS: Final = (OSError, xmlrpc.client.Error, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process as the process manager sees it: `state` is its word (RUNNING, BACKOFF, FATAL …)."""

    name: str
    state: str
    pid: int


class Supervisor:
    """The process manager of one folder's house."""

    def __init__(self, folder: Folder, programs: Sequence[Program]) -> None:
        self._folder = folder
        self._programs = list(programs)
        self._socket = folder.supervisor_socket()
        self._log = folder.logs / "supervisord.log"
        self._log_from = 0
        self._process: subprocess.Popen[bytes] | None = None

    def end_leftover(self) -> None:
        """Ends, in order, a house that an earlier run left behind. Raises `FolderError` when it does not end."""
        try:
            self._proxy().supervisor.shutdown()
        except _FAULTS:
            return
        limit = time.monotonic() + self._stop_seconds()
        # It answers until the last process is over.
        while self._answers():
            if time.monotonic() > limit:
                raise FolderError(f"processes of an earlier run do not end: see {self._log}")
            time.sleep(POLL_SECONDS)

    def start(self) -> None:
        """Starts supervisord and, with it, the processes. Raises `FolderError` when it does not come up."""
        configuration = self._folder.run / "supervisord.conf"
        self._folder.write_private(configuration, configuration_of(self._folder, self._socket, self._programs))
        self._log_from = self._log.stat().st_size if self._log.exists() else 0
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FIVEDRAW_")}
        environment[tether.PARENT] = str(os.getpid())
        # Ctrl-C is for the command, which then stops the processes in order: they get a session of their own.
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [
                sys.executable,
                "-m",
                "services.cli.house.tether",
                "-m",
                "supervisor.supervisord",
                "-c",
                str(configuration),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        self._await_answer()

    def start_late(self) -> None:
        """Starts the processes that wait for the others. Raises `FolderError` when one does not start."""
        for program in self._programs:
            if program.is_late:
                self.start_process(program.name)

    def start_process(self, name: str) -> None:
        """Starts one process that is not running. Raises `FolderError` when it does not start."""
        try:
            self._proxy().supervisor.startProcess(name)
        except _FAULTS as error:
            raise FolderError(f"{name} cannot be started: {error}") from error

    def stop_process(self, name: str) -> None:
        """Stops one process and leaves it so. Raises `FolderError`."""
        try:
            self._proxy().supervisor.stopProcess(name)
        except _FAULTS as error:
            raise FolderError(f"{name} cannot be stopped: {error}") from error

    def statuses(self) -> list[ProcessStatus]:
        """All processes. Raises `FolderError` when supervisord does not answer."""
        try:
            rows: Any = self._proxy().supervisor.getAllProcessInfo()
        except _FAULTS as error:
            raise FolderError(f"the process manager does not answer: {error}") from error
        return [ProcessStatus(str(row["name"]), str(row["statename"]), int(row["pid"])) for row in rows]

    def spawned(self) -> list[tuple[str, int]]:
        """Every start of a process in this run, in order: its name and process id."""
        if not self._log.exists():
            return []
        with self._log.open() as log:
            log.seek(self._log_from if self._log.stat().st_size >= self._log_from else 0)
            return [(found[1], int(found[2])) for line in log if (found := _SPAWNED.search(line))]

    def restarts(self) -> dict[str, int]:
        """How often each process was started again in this run; processes that never were are left out."""
        return restarts_of(name for name, _ in self.spawned())

    def is_alive(self) -> bool:
        """Whether supervisord itself is running."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> bool:
        """Stops everything in order; returns whether it ended by itself within the sum of the stop times."""
        if self._process is None:
            return True
        try:
            self._proxy().supervisor.shutdown()
        except _FAULTS:
            self._process.terminate()
        try:
            self._process.wait(self._stop_seconds())
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        return True

    def _await_answer(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while not self._answers():
            if not self.is_alive() or time.monotonic() > limit:
                raise FolderError(f"the process manager does not start: see {self._log}")
            time.sleep(POLL_SECONDS)

    def _answers(self) -> bool:
        try:
            self._proxy().supervisor.getState()
        except xmlrpc.client.Fault:
            # It refuses every call while it is shutting down.
            return True
        except _FAULTS:
            return False
        return True

    def _stop_seconds(self) -> float:
        return sum(program.stop_seconds for program in self._programs) + START_SECONDS

    def _proxy(self) -> Any:
        return xmlrpc.client.ServerProxy("http://localhost/RPC2", transport=_SocketTransport(self._socket))


def restarts_of(names: Iterable[str]) -> dict[str, int]:
    """Starts beyond the first, by name."""
    return {name: count - 1 for name, count in sorted(Counter(names).items()) if count > 1}


def configuration_of(folder: Folder, socket_path: Path, programs: Sequence[Program]) -> str:
    """supervisord's configuration."""
    sections = [
        _section("unix_http_server", {"file": str(socket_path), "chmod": "0700"}),
        _section(
            "rpcinterface:supervisor",
            {"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"},
        ),
        _section(
            "supervisord",
            {
                "nodaemon": "true",
                "silent": "true",
                "umask": "077",
                "directory": str(folder.run),
                "logfile": str(folder.logs / "supervisord.log"),
                "logfile_maxbytes": LOG_BYTES_MAX,
                "logfile_backups": str(LOG_BACKUPS),
                "pidfile": str(folder.run / "supervisord.pid"),
            },
        ),
    ]
    sections += [_program_section(folder, program) for program in programs]
    return "\n".join(sections)


def _program_section(folder: Folder, program: Program) -> str:
    environment = ",".join(f'{name}="{value}"' for name, value in sorted(program.environment.items()))
    return _section(
        f"program:{program.name}",
        {
            "command": " ".join(_quoted(part) for part in program.command),
            "priority": str(program.priority),
            "environment": environment,
            "autostart": "false" if program.is_late else "true",
            "autorestart": "true",
            "startsecs": "1",
            "startretries": str(START_RETRIES),
            "stopsignal": "TERM",
            "stopwaitsecs": str(program.stop_seconds),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": str(folder.logs / f"{program.name}.log"),
            "stdout_logfile_maxbytes": LOG_BYTES_MAX,
            "stdout_logfile_backups": str(LOG_BACKUPS),
        },
    )


def _section(title: str, options: Mapping[str, str]) -> str:
    # A percent sign begins an expansion in supervisord's format.
    lines = [f"{name}={value.replace('%', '%%')}" for name, value in options.items()]
    return "\n".join([f"[{title}]", *lines, ""])


def _quoted(part: str) -> str:
    return f'"{part}"' if " " in part else part


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=CALL_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(CALL_SECONDS)
        self.sock.connect(str(self._path))


class _SocketTransport(xmlrpc.client.Transport):
    """XML-RPC over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def make_connection(self, _: Any) -> http.client.HTTPConnection:
        return _SocketConnection(self._path)
