"""The first schema."""

from alembic import op

from judge.serve.store.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the tables."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Removes them."""
    metadata.drop_all(op.get_bind())
