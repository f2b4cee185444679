"""The call log as a file: CSV (RFC 4180) or one JSON object a line."""

import csv
import io
from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal

from assay.calls.model import LoggedCall
from assay.web.wire.analytics import LogShape, log

Format = Literal["csv", "ndjson"]

MEDIA_TYPES: Final = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}

_COLUMNS: Final = [field.alias or name for name, field in LogShape.model_fields.items()]
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a spreadsheet knows a formula. Callers choose paths and agent ids: a cell that begins so gets
a quote in front. Source: OWASP, CSV injection."""


async def written(pieces: AsyncIterator[Sequence[LoggedCall]], form: Format) -> AsyncIterator[str]:
    """The file in pieces, as they are read."""
    if form == "csv":
        yield _csv([_COLUMNS])
    async for piece in pieces:
        shapes = [log(one) for one in piece]
        if form == "ndjson":
            yield "".join(shape.model_dump_json() + "\n" for shape in shapes)
        else:
            yield _csv([[_cell(value) for value in s.model_dump().values()] for s in shapes])


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return "'" + text if isinstance(value, str) and text.startswith(_FORMULA) else text
