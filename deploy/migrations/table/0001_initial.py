"""The registry: tables, sittings and the numbers that must never be given twice."""

import sqlalchemy as sa
from alembic import op

revision = "table_0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tables",
        sa.Column("table_id", sa.String(40), primary_key=True),
        sa.Column("display_name", sa.String(60), nullable=False),
        sa.Column("rulebook", sa.String(40), nullable=False),
        sa.Column("overrides", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("template", sa.String(40), nullable=False),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_ms", sa.BigInteger, nullable=True),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("requested_by", sa.String(128), nullable=False),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("last_hand", sa.BigInteger, nullable=False),
        sa.Column("button", sa.Integer, nullable=False),
        sa.CheckConstraint("epoch >= 1"),
        sa.CheckConstraint("last_hand >= 0"),
    )
    op.create_index("tables_by_request", "tables", ["requested_by", "request_id"], unique=True)
    op.create_table(
        "sittings",
        sa.Column("sitting", sa.String(80), primary_key=True),
        sa.Column("table_id", sa.String(40), sa.ForeignKey("tables.table_id"), nullable=False),
        sa.Column("seat", sa.Integer, nullable=False),
        sa.Column("player", sa.String(80), nullable=False),
        sa.Column("display_name", sa.String(40), nullable=False),
        sa.Column("opened_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_ms", sa.BigInteger, nullable=True),
        sa.Column("left_with_minor", sa.BigInteger, nullable=True),
    )
    still_open = sa.text("closed_ms IS NULL")
    op.create_index(
        "sittings_one_per_seat",
        "sittings",
        ["table_id", "seat"],
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
    op.create_index(
        "sittings_one_per_player",
        "sittings",
        ["table_id", "player"],
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
    op.create_index("tables_by_template", "tables", ["template"])
    op.create_table(
        "templates",
        sa.Column("template_id", sa.String(40), primary_key=True),
        sa.Column("rulebook", sa.String(40), nullable=False),
        sa.Column("overrides", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("spare_tables", sa.Integer, nullable=False),
        sa.Column("max_tables", sa.Integer, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
    )
    op.create_index("sittings_left", "sittings", ["table_id", "player", "closed_ms"])


def downgrade() -> None:
    raise NotImplementedError("migrations run forward only")
