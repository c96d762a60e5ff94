"""What the console's words make of names."""

from __future__ import annotations

import pytest
from fivedraw.table.v1 import event_pb2, table_pb2

from services.console import words


@pytest.mark.parametrize(
    ("name", "drawn"),
    [("ann", "ann"), ("bots-1-house-4", "bots-1-house-4"), ("bots-2-clocked-4", "bots-2…ocked-4")],
)
def test_a_long_name_keeps_both_ends(name, drawn):
    assert words.short(name) == drawn
    assert len(drawn) <= words.NAME_MAX


def test_only_what_has_a_level_tells_one():
    took = {"seat": 2, "to_minor": 20}
    fold = event_pb2.TableEvent(action_taken=event_pb2.ActionTaken(kind=table_pb2.ACTION_KIND_FOLD, **took))
    call = event_pb2.TableEvent(action_taken=event_pb2.ActionTaken(kind=table_pb2.ACTION_KIND_CALL, **took))
    assert [words.line(fold), words.line(call)] == ["seat 2: fold", "seat 2: call to 0.20"]
