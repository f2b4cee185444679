"""Converts between rows of the event tables and values."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, false, or_, update

from assay.db.engine import Database
from assay.db.schema.everything import (
    chain_feedback,
    chain_fundings,
    chain_notes,
    chain_owners,
    chain_proofs,
    chain_transfers,
    index_streams,
)
from assay.reputation.ports import EventCursor, Stream
from assay.reputation.rows import Batch

PARAMETERS = 500
"""Values in one statement, below the limits of both databases."""

ROWS_LOCK = "rows of the index"
"""Lock for adding and removing rows, so that no row of a stored range is missing."""

BY_BLOCK = (
    *(chain_feedback, chain_notes, chain_owners),
    *(chain_transfers, chain_fundings, chain_proofs),
)
"""Tables whose rows are deleted with a reorganised block."""

_S = index_streams.c


def is_seller(network: str) -> ColumnElement[bool]:
    """Match a recipient whose payments are read."""
    return and_(
        _S.kind == "payments",
        _S.network == network,
        _S.subject == chain_transfers.c.recipient,
    )


def these(streams: Sequence[Stream]) -> ColumnElement[bool]:
    """Match the rows of these streams by key: SQLite scans all rows for a list of triples."""
    subjects: dict[tuple[str, str], list[str]] = {}
    for one in streams:
        subjects.setdefault((one.kind, one.network), []).append(one.subject)
    return or_(
        false(),
        *(
            and_(_S.kind == kind, _S.network == network, _S.subject.in_(of))
            for (kind, network), of in subjects.items()
        ),
    )


def parts(values: Sequence[Any]) -> Sequence[Any]:
    """Split values into parts that fit one statement each."""
    return [values[at : at + PARAMETERS] for at in range(0, len(values), PARAMETERS)]


async def touch(database: Database, streams: Sequence[Stream], day: int) -> None:
    """Record that an evaluation needed them on that day."""
    for part in parts(streams):
        needed = update(index_streams).where(these(part), _S.asked_day < day)
        async with database.write() as connection:
            await database.lock(connection, ROWS_LOCK)
            await connection.execute(needed.values(asked_day=day))


def stream_row(stream: Stream, block: int, day: int) -> dict[str, Any]:
    """Return the row of a stream that begins after a block, needed on that day."""
    return {
        "kind": stream.kind,
        "network": stream.network,
        "subject": stream.subject,
        "block": block,
        "block_hash": "",
        "rows": 0,
        "is_done": False,
        "is_whole": False,
        "asked_day": day,
    }


def stream_of(row: Row[Any]) -> Stream:
    """Return the stream of a row."""
    return Stream(row.kind, row.network, row.subject)


def cursor_of(row: Row[Any]) -> EventCursor:
    """Return how far the stream of a row was read."""
    return EventCursor(row.block, row.block_hash, bool(row.is_done), bool(row.is_whole))


def _names(row: object) -> Sequence[str]:
    return tuple(getattr(row, "__slots__", ()))


def rows_of(network: str, batch: Batch) -> Sequence[tuple[Table, list[dict[str, Any]]]]:
    """Return the rows of a batch for each table."""

    def of(row: object, **more: object) -> dict[str, Any]:
        return {"network": network, **{n: getattr(row, n) for n in _names(row)}, **more}

    return (
        (chain_feedback, [of(r, file="unchecked" if r.uri else "none") for r in batch.feedback]),
        (chain_notes, [of(r) for r in batch.notes]),
        (chain_owners, [of(r) for r in batch.owners]),
        (chain_transfers, [of(r) for r in batch.transfers]),
        (
            chain_fundings,
            [
                {"network": network, "account": a, "funder": f, "block": b}
                for a, (f, b) in sorted(batch.fundings.items())
            ],
        ),
    )
