"""Runs a program that ends when its parent does: `python -m services.cli.house.tether (-m MODULE | PROGRAM) [ARG]...`.

A house is a tree of processes. Should its root be killed, nothing below may go on alone with the folder's files.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
# Holds the process id of the tethered process whose children read it.
PARENT: Final = "FIVEDRAW_TETHERED_TO"


def end_with_parent() -> None:
    """Asks the kernel to send SIGTERM when the parent ends (Linux; elsewhere it does nothing).

    A parent that was gone before will send nothing: a process that does not find the one it expects ends at once.
    """
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
        if os.environ.get(PARENT, str(os.getppid())) != str(os.getppid()):
            raise SystemExit("the parent is gone")
    os.environ[PARENT] = str(os.getpid())


def main() -> None:
    """Ties itself to its parent and becomes the program."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    end_with_parent()
    if sys.argv[1] == "-m":
        sys.argv = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - becoming the program is the point


if __name__ == "__main__":
    main()
