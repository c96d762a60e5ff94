"""After a change of service keys: what is sealed under an older one is sealed anew, a few at a time."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import Connection

from services.deck.sealed import HandSealer
from services.deck.store import HANDS, TABLES
from services.runtime.database import Database

KEYS_TOGETHER_MAX: Final = 500

_OLD_KEYS: Final = (
    sa.select(HANDS.c.table_name, HANDS.c.hand, HANDS.c.sealed_key)
    .where(sa.or_(HANDS.c.key_id < sa.bindparam("newest"), HANDS.c.key_id > sa.bindparam("newest")))
    .limit(KEYS_TOGETHER_MAX)
    .with_for_update(skip_locked=True)
)
_NEW_KEY: Final = (
    sa.update(HANDS)
    .where(HANDS.c.table_name == sa.bindparam("of_table"), HANDS.c.hand == sa.bindparam("of_hand"))
    .values(sealed_key=sa.bindparam("new_sealed"), key_id=sa.bindparam("new_id"))
)
_SEEDS: Final = (
    sa.select(TABLES.c.table_name, TABLES.c.deck_number, TABLES.c.next_seed)
    .where(TABLES.c.table_name > sa.bindparam("after"))
    .order_by(TABLES.c.table_name)
    .limit(KEYS_TOGETHER_MAX)
    .with_for_update()
)
_NEW_SEED: Final = (
    sa.update(TABLES)
    .where(TABLES.c.table_name == sa.bindparam("of_table"))
    .values(next_seed=sa.bindparam("new_sealed"))
)


async def rotate(db: Database, sealer: HandSealer) -> int:
    """Seals everything under the newest key; returns how many keys and seeds were under an older one.

    A hand that is being played at that moment may be passed over; the next start finds it.
    Raises `SealBrokenError` where the old key is not among the service's keys any more.
    """
    total = 0
    while moved := await db.write(_rotate_keys, sealer):
        total += moved
    after = ""
    while True:
        after, moved = await db.write(_rotate_seeds, sealer, after)
        total += moved
        if not after:
            return total


def _rotate_keys(conn: Connection, sealer: HandSealer) -> int:
    rows = conn.execute(_OLD_KEYS, {"newest": sealer.newest_key_id}).all()
    moved = [
        {
            "of_table": table,
            "of_hand": hand,
            "new_sealed": sealer.wrap_key(table, hand, sealer.unwrap_key(table, hand, sealed)),
            "new_id": sealer.newest_key_id,
        }
        for table, hand, sealed in rows
    ]
    if moved:
        conn.execute(_NEW_KEY, moved)
    return len(moved)


def _rotate_seeds(conn: Connection, sealer: HandSealer, after: str) -> tuple[str, int]:
    """One page of tables; returns the last name of a full page, or an empty one at the end."""
    rows = conn.execute(_SEEDS, {"after": after}).all()
    moved = []
    for table, number, sealed in rows:
        if sealed and sealer.key_id_of(sealed) != sealer.newest_key_id:
            seed = sealer.open_next_seed(table, number + 1, sealed)
            moved.append({"of_table": table, "new_sealed": sealer.seal_next_seed(table, number + 1, seed)})
    if moved:
        conn.execute(_NEW_SEED, moved)
    return (rows[-1][0] if len(rows) == KEYS_TOGETHER_MAX else ""), len(moved)
