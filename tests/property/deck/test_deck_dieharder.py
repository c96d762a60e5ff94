"""The raw stream of the generator under dieharder's tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

from services.deck.drbg import REQUEST_BYTES_MAX, Generator
from services.deck.health import CheckedSource, Health

# Birthdays, binary rank, count the 1s, runs, craps and the STS tests: those that need no more than some hundred
# megabytes, since a generator that hashes is slow beside what these tests are made for.
TESTS = (0, 2, 8, 15, 16, 100, 101, 102)


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("number", TESTS)
def test_dieharder_finds_nothing_in_the_stream(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    generator = Generator(CheckedSource(os.urandom, Health()))
    command = ["dieharder", "-d", str(number), "-g", "200", "-D", "test_name", "-D", "pvalues", "-D", "assessment"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)

    def feed() -> None:
        # It reads as much as it needs and closes the pipe.
        try:
            while True:
                process.stdin.write(generator.more(REQUEST_BYTES_MAX))
        except BrokenPipeError:
            pass

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    told = process.stdout.read().decode()
    assert process.wait() == 0
    feeder.join()
    verdicts = re.findall(r"\b(PASSED|WEAK|FAILED)\b", told)
    with capsys.disabled():
        sys.stdout.write(told)
    assert verdicts
    assert "FAILED" not in verdicts
