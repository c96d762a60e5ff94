"""Changes of players are batches too, so that they are sealed; display names that look alike have the same key."""

from __future__ import annotations

import json
import re
import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "wallet_0008"
down_revision = "wallet_0007"
branch_labels = None
depends_on = None

# As the ledger worded a change of limits.
LIMITS = re.compile(r"limits ([A-Z]{3,8}) deposit (\d+) buy-in (\d+): (.*)", re.DOTALL)

# As of this revision, in the order of services/wallet/names.py: figures, Latin, Cyrillic, Greek.
LOOK_ALIKES = str.maketrans(
    "01"
    "\u0131\u0142\u00f8\u0111"
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u04bb"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "olilodabekmhopctyxijshabezhikmvoptux",
)


def upgrade() -> None:
    conn = op.get_bind()
    _book_earlier_changes(conn)
    _key_display_names(conn)


def _book_earlier_changes(conn: sa.Connection) -> None:
    earlier = conn.execute(
        sa.text(
            "SELECT change_no, player, state, reason, changed_by, changed_ms FROM player_changes ORDER BY change_no"
        )
    ).all()
    for change_no, player, state, reason, changed_by, changed_ms in earlier:
        limits = LIMITS.fullmatch(reason)
        content: dict[str, object] = {"player": player}
        if limits:
            content |= {
                "currency": limits[1],
                "deposit_day_max_minor": int(limits[2]),
                "buy_in_day_max_minor": int(limits[3]),
            }
        content |= {"state": state, "reason": limits[4] if limits else reason, "changed_by": changed_by}
        conn.execute(
            sa.text(
                "INSERT INTO batches (batch_no, batch_key, operation, table_id, hand, content, outcome, answer,"
                " line_count, committed_ms)"
                " VALUES (:number, :key, :operation, '', 0, :content, 'OK', '{}', 0, :committed_ms)"
            ),
            {
                "number": _next_number(conn),
                "key": f"change {change_no}",
                "operation": "SetPlayerLimits" if limits else "SetPlayerState",
                "content": json.dumps(content, ensure_ascii=False, separators=(",", ":")),
                "committed_ms": changed_ms,
            },
        )


def _next_number(conn: sa.Connection) -> int:
    if conn.dialect.name == "postgresql":
        return int(conn.execute(sa.text("SELECT nextval('batch_numbers')")).scalar_one())
    return int(conn.execute(sa.text("SELECT coalesce(max(batch_no), 0) + 1 FROM batches")).scalar_one())


def _key_display_names(conn: sa.Connection) -> None:
    """The one who came first keeps a key; later ones whose names look the same keep theirs under a private one."""
    rows = conn.execute(
        sa.text("SELECT player, display_name, display_key FROM players ORDER BY created_ms, player")
    ).all()
    taken: set[str] = set()
    changed: list[dict[str, str]] = []
    for player, display_name, before in rows:
        key = _display_key(display_name)
        if key in taken:
            key = f"{key}#{player}"
        taken.add(key)
        if key != before:
            changed.append({"player": player, "key": key})
    # A key may be another's former one for a moment.
    for step in changed:
        conn.execute(sa.text("UPDATE players SET display_key = '#' || player WHERE player = :player"), step)
    for step in changed:
        conn.execute(sa.text("UPDATE players SET display_key = :key WHERE player = :player"), step)


def _display_key(display_name: str) -> str:
    folded = unicodedata.normalize("NFKC", display_name).casefold()
    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", folded)).translate(LOOK_ALIKES)
