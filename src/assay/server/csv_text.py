"""Responses as CSV (RFC 4180), safe to open in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from assay.server.schemas import ResponseModel

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a formula in spreadsheets. Callers choose paths and agent ids, so a cell that
begins with one gets a quote in front. Source: OWASP, CSV injection."""


def csv_head(shape: type[ResponseModel]) -> str:
    """Return the header line: the field names, as in JSON."""
    return _lines([[field.alias or name for name, field in shape.model_fields.items()]])


def csv_rows(answers: Iterable[ResponseModel]) -> str:
    """Return one line for each answer. Values are texts, numbers, truth values or None."""
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
