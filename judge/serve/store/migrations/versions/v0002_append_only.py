"""The audit log and the versions of boards only grow, whichever program writes to the database."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_KEPT = {
    "event": "seq, created, kind, object, actor, before, after, detail, request, address",
    "board_version": "board, number, conditions, document, previous, sha256, signature, key_id",
}
"""Table -> columns that never change after a row is inserted; no row is ever removed."""


def upgrade() -> None:
    """Makes the database refuse changes of these columns and removals of rows."""
    if op.get_bind().dialect.name == "sqlite":
        for table, columns in _KEPT.items():
            for name, act in (("update", f"UPDATE OF {_quoted(columns)}"), ("delete", "DELETE")):
                _run(
                    f"CREATE TRIGGER {table}_{name} BEFORE {act} ON {table} BEGIN "
                    f"SELECT RAISE(ABORT, '{table} only grows'); END"
                )
        return
    _run(
        "CREATE FUNCTION judge_only_grows() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% only grows', TG_TABLE_NAME "
        "USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    for table, columns in _KEPT.items():
        _run(
            f"CREATE TRIGGER {table}_only_grows "
            f"BEFORE UPDATE OF {_quoted(columns)} OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION judge_only_grows()"
        )


def downgrade() -> None:
    """Removes these triggers."""
    if op.get_bind().dialect.name == "sqlite":
        for table in _KEPT:
            for name in ("update", "delete"):
                _run(f"DROP TRIGGER {table}_{name}")
        return
    for table in _KEPT:
        _run(f"DROP TRIGGER {table}_only_grows ON {table}")
    _run("DROP FUNCTION judge_only_grows()")


def _quoted(columns: str) -> str:
    return ", ".join(f'"{column}"' for column in columns.split(", "))


def _run(statement: str) -> None:
    op.get_bind().execute(sa.text(statement))
