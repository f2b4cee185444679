"""Rows of the event tables and the values they stand for."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, tuple_

from assay.infra.sql.tables import (
    chain_feedback,
    chain_fundings,
    chain_notes,
    chain_owners,
    chain_transfers,
    index_streams,
)
from assay.reputation.ports import Cursor, Stream
from assay.reputation.rows import Batch

PARAMETERS = 500
"""Values in one statement, below what either database takes."""

_S = index_streams.c


def is_seller(network: str) -> ColumnElement[bool]:
    """A recipient whose payments are read."""
    return and_(
        _S.kind == "payments",
        _S.network == network,
        _S.subject == chain_transfers.c.recipient,
    )


def these(streams: Sequence[Stream]) -> ColumnElement[bool]:
    """The rows of these streams."""
    keys = [(one.kind, one.network, one.subject) for one in streams]
    return tuple_(_S.kind, _S.network, _S.subject).in_(keys)


def parts(values: Sequence[Any]) -> Sequence[Any]:
    """Values for one statement each."""
    return [values[at : at + PARAMETERS] for at in range(0, len(values), PARAMETERS)]


def stream_row(stream: Stream, block: int) -> dict[str, Any]:
    """A stream that begins after a block."""
    return {
        "kind": stream.kind,
        "network": stream.network,
        "subject": stream.subject,
        "block": block,
        "block_hash": "",
        "rows": 0,
        "is_done": False,
    }


def stream_of(row: Row[Any]) -> Stream:
    """The stream of a row."""
    return Stream(row.kind, row.network, row.subject)


def cursor_of(row: Row[Any]) -> Cursor:
    """How far the stream of a row was read."""
    return Cursor(row.block, row.block_hash, bool(row.is_done))


def _names(row: object) -> Sequence[str]:
    return tuple(getattr(row, "__slots__", ()))


def rows_of(network: str, batch: Batch) -> Sequence[tuple[Table, list[dict[str, Any]]]]:
    """What a batch puts into each table."""

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
