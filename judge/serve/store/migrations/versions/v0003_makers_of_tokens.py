"""Adds the token that made a token, so that both end together."""

import sqlalchemy as sa
from alembic import op

from judge.serve.store.tables import token

revision = "0003"
down_revision = "0002"

_INDEX = "ix_token_maker"


def upgrade() -> None:
    """Adds the column, unless migration 0001 has just created the tables in their current form."""
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(token.name)}
    if "maker" not in columns:
        op.add_column(token.name, sa.Column("maker", token.c.maker.type))
        op.create_index(_INDEX, token.name, ["maker"])


def downgrade() -> None:
    """Removes the column; tokens made with other tokens then stay valid without those."""
    op.drop_index(_INDEX, token.name)
    op.drop_column(token.name, "maker")
