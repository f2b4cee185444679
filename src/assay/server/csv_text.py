"""Answers as CSV (RFC 4180), safe to open in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from assay.server.schemas_base import ResponseModel

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a spreadsheet knows a formula. Callers choose paths and agent ids: a cell that begins so gets
a quote in front. Source: OWASP, CSV injection."""


def csv_head(shape: type[ResponseModel]) -> str:
    """The first line: names of the fields, as they are in JSON."""
    return _lines([[field.alias or name for name, field in shape.model_fields.items()]])


def csv_rows(answers: Iterable[ResponseModel]) -> str:
    """A line of each answer. Its values are texts, numbers, truth values or None."""
    return _lines([[_cell(value) for value in one.model_dump().values()] for one in answers])


def _lines(rows: Sequence[Sequence[str]]) -> str:
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


MEDIA_TYPES: Final = {"csv": "text/csv; charset=utf-8", "ndjson": "application/x-ndjson"}
