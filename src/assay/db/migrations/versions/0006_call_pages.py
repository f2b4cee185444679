"""Pages of the call log by an index alone: the call's number stands in it."""

from alembic import op

revision = "0006"
down_revision = "0005"

_INDEXES = {
    "ix_calls_operator": ["operator_id", "at_us", "seq"],
    "ix_calls_agent": ["agent_key", "at_us", "seq", "wrapper_key"],
    "ix_calls_wrapper": ["wrapper_key", "at_us", "seq"],
}


def upgrade() -> None:
    """Make the three indexes anew."""
    for name, columns in _INDEXES.items():
        op.drop_index(name, "calls")
        op.create_index(name, "calls", columns)
