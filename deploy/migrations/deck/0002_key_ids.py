"""Which service key a hand's own key is under, so that a change of keys finds what is left under an older one."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("deck_hands", sa.Column("key_id", sa.Text, nullable=False, server_default=""))
    op.create_index("deck_hands_key_id", "deck_hands", ["key_id"])


def downgrade() -> None:
    op.drop_index("deck_hands_key_id", "deck_hands")
    with op.batch_alter_table("deck_hands") as table:
        table.drop_column("key_id")
