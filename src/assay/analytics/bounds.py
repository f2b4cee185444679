"""What a row of the call log may hold, so that every database takes every row.

Most of a row was sent by a stranger. A value no database can hold would otherwise hold up every
row after it.
"""

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from types import MappingProxyType
from typing import Final

from assay.analytics.model import CallKind, CallLogEntry

TEXT_CHARS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "operator_id": 36,
        "wrapper_id": 36,
        "request_id": 64,
        "method": 32,
        "path": 300,
        "agent_id": 80,
        "agent_address": 64,
        "payer": 64,
        "client": 64,
        "tier": 3,
        "outcome": 32,
        "payment_id": 36,
        "chain": 64,
        "route": 16,
    }
)
"""The longest text of each column; a test holds them against the tables."""

NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "status": 999,
        "latency_us": 10**12,
        "cost": 2**53,
        "request_bytes": 2**53,
        "response_bytes": 2**53,
    }
)
"""The largest number of each column; the smallest is 0. Times are summed: twelve days at most."""

_KIND_TEXTS: Final = tuple(
    (name, most) for name, most in TEXT_CHARS.items() if name in CallKind.__dataclass_fields__
)
_CALL_TEXTS: Final = tuple(
    (name, most) for name, most in TEXT_CHARS.items() if name in CallLogEntry.__dataclass_fields__
)
_NUMBERS: Final = tuple(NUMBERS.items())
_USUAL_CHARS: Final = 64
_USUAL_NUMBER: Final = 2**31
"""What is within the bounds of every text, and of every number but the status."""

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def bound(call: CallLogEntry) -> None:
    """Cut and clean what no database could hold, in place; everything else stays as it is.

    What calls of a kind have in common is looked at once.
    """
    if not call.kind.is_bounded:
        _bound_kind(call.kind)
    if not _is_usual(call):
        _bound_texts(call, _CALL_TEXTS)
        for name, most in _NUMBERS:
            setattr(call, name, min(max(getattr(call, name), 0), most))


def _is_usual(call: CallLogEntry) -> bool:
    """Whether there is nothing to do: one look, for it is taken at every call."""
    text = call.request_id + call.client
    return (
        call.outcome == "forwarded"
        and len(text) <= _USUAL_CHARS
        and text.isascii()
        and "\0" not in text
        and call.payment_id is None
        and 0 <= call.latency_us <= _USUAL_NUMBER
        and 0 <= call.request_bytes <= _USUAL_NUMBER
        and 0 <= call.response_bytes <= _USUAL_NUMBER
        and 0 <= call.cost <= _USUAL_NUMBER
        and 0 <= call.status <= NUMBERS["status"]
    )


def _bound_kind(kind: CallKind) -> None:
    _bound_texts(kind, _KIND_TEXTS)
    if kind.score is not None and not isfinite(kind.score):
        kind.score = None
    kind.is_bounded = True


def _bound_texts(of: CallLogEntry | CallKind, texts: Iterable[tuple[str, int]]) -> None:
    for name, most in texts:
        text: str | None = getattr(of, name)
        if text and (len(text) > most or not text.isascii() or "\0" in text):
            setattr(of, name, _UNSTORABLE.sub("\ufffd", text[:most]))
