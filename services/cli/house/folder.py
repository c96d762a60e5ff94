"""The data folder of an embedded house: where what lies, and who holds it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

# The kernel's limit for a Unix socket's path is 107 bytes; supervisord first binds a longer temporary name.
SOCKET_PATH_BYTES_MAX: Final = 90


class FolderError(RuntimeError):
    """The data folder cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Paths in one data folder. Everything in it is for its owner alone."""

    root: Path

    @classmethod
    def at(cls, path: str | Path) -> Folder:
        """The folder at `path`, which need not exist yet."""
        return cls(Path(path).expanduser().resolve())

    @property
    def keys(self) -> Path:
        """Keys made at the first start."""
        return self.root / "keys"

    @property
    def logs(self) -> Path:
        """A log file for each process."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """What is written anew at each start: configuration, pid file."""
        return self.root / "run"

    @property
    def redis(self) -> Path:
        """The Redis-compatible server's files."""
        return self.root / "redis"

    @property
    def sql(self) -> Path:
        """SQLite files, one for each service."""
        return self.root / "sql"

    @property
    def ports_file(self) -> Path:
        """Which ports the running (or last) house has."""
        return self.run / "ports.json"

    def database_url(self, service: str) -> str:
        """URL of a service's SQLite file."""
        return f"sqlite:///{self.sql / f'{service}.sqlite'}"

    def make(self) -> None:
        """Makes the folders that are not there. Raises `FolderError`."""
        for path in (self.root, self.keys, self.logs, self.run, self.redis, self.sql):
            try:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise FolderError(f"{path} cannot be made: {error.strerror}") from error

    def supervisor_socket(self) -> Path:
        """The process manager's socket: in the folder, or in a private temporary one where the path is too long."""
        near = self.run / "supervisor.sock"
        if len(os.fsencode(near)) <= SOCKET_PATH_BYTES_MAX:
            return near
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        private = Path(tempfile.gettempdir()) / f"fivedraw-{os.getuid()}-{digest}"
        private.mkdir(mode=0o700, exist_ok=True)
        owner = private.stat()
        if owner.st_uid != os.getuid() or owner.st_mode & 0o077:
            raise FolderError(f"{private} belongs to somebody else: remove it or choose a shorter --data path")
        return private / "supervisor.sock"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the folder for this process. Raises `FolderError` while another process does."""
        with (self.run / "up.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise FolderError(
                    f"a house is already running on {self.root}: stop it, or choose another --data"
                ) from error
            yield

    def write_private(self, path: Path, content: str) -> None:
        """Writes a file that only its owner may read, all of it or nothing."""
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    def remember_ports(self, ports: dict[str, Any]) -> None:
        """Writes down where the house answers, for the other commands."""
        self.write_private(self.ports_file, json.dumps(ports, indent=2))

    def remembered_ports(self) -> dict[str, Any]:
        """Where the house answers. Raises `FolderError` if none was ever started here."""
        try:
            ports: dict[str, Any] = json.loads(self.ports_file.read_text())
        except FileNotFoundError as error:
            raise FolderError(f"no house was started on {self.root} yet: `fivedraw up --data {self.root}`") from error
        return ports
