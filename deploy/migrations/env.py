"""Runs any service's revisions on the connection that `services.runtime.migrations` opened and locked."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    # Both databases roll DDL back; Alembic assumes otherwise of SQLite.
    transactional_ddl=True,
    render_as_batch=True,
)

with context.begin_transaction():
    context.run_migrations()
