"""The deck service as it runs: a process of its own on a port of its own, ended as a test wishes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import grpc

from tests.conftest import SEALING_KEY, SERVICE_KEY
from tests.servers import free_port

START_SECONDS_MAX = 60


class DeckProcess:
    """One replica. `folder` gets its log (and its database, unless `database_url` names one)."""

    def __init__(self, folder: Path, jwks: Path, *, database_url: str = "", name: str = "deck") -> None:
        self.target = f"127.0.0.1:{free_port()}"
        self._log = folder / f"{name}.log"
        self._env = {
            **os.environ,
            "FIVEDRAW_LISTEN": self.target,
            "FIVEDRAW_DATABASE_URL": database_url or f"sqlite:///{folder / 'deck.sqlite'}",
            "FIVEDRAW_JWKS": str(jwks),
            "FIVEDRAW_SERVICE_KEY": SERVICE_KEY.hex(),
            "FIVEDRAW_SEALING_KEYS": f"test:{SEALING_KEY.hex()}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> None:
        """Starts it, if it does not run."""
        if self._process is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([sys.executable, "-m", "services.deck"], env=self._env, stderr=log)

    async def start(self) -> None:
        self.spawn()
        await self.ready()

    async def ready(self) -> None:
        """Returns once it answers."""
        async with grpc.aio.insecure_channel(self.target) as channel:
            await asyncio.wait_for(channel.channel_ready(), START_SECONDS_MAX)

    def end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        status = self._process.wait(START_SECONDS_MAX)
        self._process = None
        return status

    def log(self) -> str:
        return self._log.read_text()
