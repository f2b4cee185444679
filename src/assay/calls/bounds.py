"""What a row of the call log may hold, so that every database takes every row.

Most of a row was sent by a stranger. A value no database can hold would otherwise hold up every
row after it.
"""

import re
from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType
from typing import Final

from assay.calls.model import Call

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

_TEXTS: Final = tuple(TEXT_CHARS.items())
_NUMBERS: Final = tuple(NUMBERS.items())
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def bound(call: Call) -> None:
    """Cut and clean what no database could hold, in place; everything else stays as it is."""
    for name, most in _TEXTS:
        text: str | None = getattr(call, name)
        if text and (len(text) > most or not text.isascii() or "\0" in text):
            setattr(call, name, _UNSTORABLE.sub("\ufffd", text[:most]))
    for name, most in _NUMBERS:
        number: int = getattr(call, name)
        if number and not 0 <= number <= most:
            setattr(call, name, min(max(number, 0), most))
    if call.score is not None and not isfinite(call.score):
        call.score = None
