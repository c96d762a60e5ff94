"""Reasons: one list, agreeing with what the protos promise, and the same on both ends of the wire."""

import pickle
import re
import sys
from pathlib import Path

import grpc
import pytest

from services.runtime.errors import REASONS, Fault, from_status, to_status

PROTOS = sorted((Path(__file__).parents[3] / "proto").rglob("*.proto"))
CODES = "|".join(code.name for code in grpc.StatusCode)
# `FAILED_PRECONDITION (STALE_EPOCH, HAND_CLOSED: every fault at once, ...)` in a comment.
PROMISE = re.compile(rf"\b({CODES})\s*\(([^)]*)\)")
REASON = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")


def promises() -> list[tuple[str, str, str]]:
    found = []
    for path in PROTOS:
        text = re.sub(r"\n\s*//", " ", path.read_text())
        for code, inside in PROMISE.findall(text):
            found += [(path.name, code, reason) for reason in REASON.findall(inside)]
    return found


def test_the_protos_promise_only_listed_reasons_with_their_status():
    assert len(promises()) > 20
    wrong = [
        (file, code, reason)
        for file, code, reason in promises()
        if reason not in REASONS or REASONS[reason].status.name != code
    ]
    assert wrong == []


def test_reasons_are_upper_snake_and_say_what_to_do():
    for reason, meaning in REASONS.items():
        assert re.fullmatch(r"[A-Z][A-Z_]{2,62}", reason)
        assert 10 <= len(meaning.advice) <= 100
        assert meaning.advice[0].islower() or meaning.advice.startswith("'")
        assert not meaning.advice.endswith(".")


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_a_refusal_comes_back_as_it_went(reason):
    fault = Fault(reason, "needs 500: has 20", need="500", have="20")
    back = from_status(to_status(fault))
    assert (back.reason, back.message, back.metadata) == (reason, "needs 500: has 20", {"need": "500", "have": "20"})
    assert back.status is REASONS[reason].status


def test_an_unlisted_reason_is_a_mistake():
    with pytest.raises(KeyError):
        Fault("NO_SUCH_REASON", "x")


def test_a_refusal_crosses_processes():
    fault = pickle.loads(pickle.dumps(Fault("PLAYER_FROZEN", "alice is frozen", player="alice")))  # noqa: S301
    assert (fault.reason, fault.metadata) == ("PLAYER_FROZEN", {"player": "alice"})


PAGE = Path(__file__).parents[3] / "docs" / "errors.md"
INTRODUCTION = """# Reasons

Every refusal carries one of these as the reason of its `google.rpc.ErrorInfo` (domain `fivedraw`), with the facts as
metadata. A message is the facts in words, a colon, and the advice below.
"""


def page() -> str:
    lines = [INTRODUCTION, "| reason | status | what to do |", "|---|---|---|"]
    lines += [f"| `{name}` | {reason.status.name} | {reason.advice} |" for name, reason in sorted(REASONS.items())]
    return "\n".join(lines)


def test_the_page_of_reasons_is_up_to_date():
    assert PAGE.read_text() == page() + "\n", "run: python -m tests.unit.runtime.test_errors > docs/errors.md"


if __name__ == "__main__":
    sys.stdout.write(page() + "\n")
