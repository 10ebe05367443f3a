"""The schema's versions, applied by Alembic."""
