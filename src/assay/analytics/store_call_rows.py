"""Calls as rows of the log: how they are written, and read back.

The widest and most frequent rows of the house, written beside the loop that answers requests. On
SQLite many go into one statement, for each statement hands the interpreter's lock to and fro; and a
statement names only the columns its rows have values for: the driver looks for an adapter of every
None it is given, and of every boolean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Final, TypeAlias

from sqlalchemy import RowMapping, and_

from assay.analytics.model import CallKind, CallLogEntry
from assay.analytics.store_rollups import short_key
from assay.db.connect import DatabaseKind
from assay.db.engine import from_us
from assay.db.schema.everything import calls, payments

AT_ONCE: Final = (250, 25, 1)
"""Rows of one statement: at most 24 values each, and SQLite takes 32,766."""

BOUGHT_BY: Final = and_(
    calls.c.payment_id == payments.c.id,
    # SQLite keeps no statistics, and would read all calls of the operator; a sum is in no index.
    calls.c.operator_id + "" == payments.c.operator_id,
    calls.c.outcome != "replayed",
)
"""Of a call and a payment: whether the call is what was paid for. A replay is not, nor is another
seller's that was not served."""

_KIND: Final = tuple(f.name for f in fields(CallKind) if f.name != "is_bounded")
_OTHERS: Final = frozenset({"kind", "at", "payment_id", "is_sale"})
_CALL: Final = tuple(f.name for f in fields(CallLogEntry) if f.name not in _OTHERS)
_KEYS: Final = ("agent_key", "wrapper_key")

_of_kind = attrgetter(*_KIND)
_of_call = attrgetter(*_CALL)

_Columns: TypeAlias = tuple[str, ...]
_Timed: TypeAlias = Sequence[tuple[int, CallLogEntry]]
"""Each with its time in microseconds since 1970."""


def call_of(row: RowMapping) -> CallLogEntry:
    """The call of a row."""
    kind = CallKind(**{name: row[name] for name in _KIND}, is_bounded=True)
    plain = {name: row[name] for name in (*_CALL, "payment_id")}
    return CallLogEntry(kind=kind, at=from_us(row["at_us"]), **plain)


def agent_key(kind: CallKind) -> int | None:
    """What the index by agent holds of a call; None for a call of nobody."""
    return None if kind.agent is None else short_key(kind.operator_id, kind.agent)


def insertions(kind: DatabaseKind, timed: _Timed) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    """Statements, each with the sets of values to run it with, for the driver's `executemany`.

    The toolkit's own costs five times as much.
    """
    numbered = kind == "postgresql"
    for columns, values in _by_columns(timed, has_booleans=numbered).items():
        width, at = len(columns), 0
        for rows in (1,) if numbered else AT_ONCE:
            size = rows * width
            end = at + (len(values) - at) // size * size
            if end > at:
                sets = [tuple(values[start : start + size]) for start in range(at, end, size)]
                yield _insert(columns, rows, numbered=numbered), sets
                at = end


def _by_columns(timed: _Timed, *, has_booleans: bool) -> dict[_Columns, list[object]]:
    """The values of all rows in a row, for each set of columns that have a value."""
    found: dict[_Columns, list[object]] = {}
    kinds: dict[int, tuple[list[object], list[object], list[object]]] = {}
    for at_us, call in timed:
        known = kinds.get(id(call.kind))
        if known is None:
            known = _prepared(call.kind, found, has_booleans=has_booleans)
            kinds[id(call.kind)] = known
        own, free, bought = known
        if call.payment_id is None:
            values = free
        else:
            values = bought
            values.append(call.payment_id)
        values.append(at_us)
        values += _of_call(call)
        values += own
    return found


def _prepared(
    kind: CallKind, found: dict[_Columns, list[object]], *, has_booleans: bool
) -> tuple[list[object], list[object], list[object]]:
    """A kind's own values, and where its calls go: those without a payment, those with one."""
    named = [*zip(_KIND, _of_kind(kind), strict=True)]
    named += zip(_KEYS, (agent_key(kind), short_key(kind.wrapper_id)), strict=True)
    if not has_booleans:
        named = [(name, int(v) if isinstance(v, bool) else v) for name, v in named]
    given = [(name, value) for name, value in named if value is not None]
    columns = ("at_us", *_CALL, *(name for name, _ in given))
    free = found.setdefault(columns, [])
    bought = found.setdefault(("payment_id", *columns), [])
    return [value for _, value in given], free, bought


@lru_cache(maxsize=256)
def _insert(columns: _Columns, rows: int, *, numbered: bool) -> str:
    values = (f"${n}" if numbered else "?" for n in range(1, len(columns) + 1))
    row = f"({', '.join(values)})"
    return f"INSERT INTO calls ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608 - our own names
