"""The call log as a file: CSV or one JSON object a line."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal

from assay.analytics.model import LoggedCall
from assay.analytics.schemas import LogResponse, log
from assay.server.csv_text import csv_head, csv_rows

Format = Literal["csv", "ndjson"]


async def written(pieces: AsyncIterator[Sequence[LoggedCall]], form: Format) -> AsyncIterator[str]:
    """The file in pieces, as they are read."""
    if form == "csv":
        yield csv_head(LogResponse)
    async for piece in pieces:
        shapes = [log(one) for one in piece]
        if form == "ndjson":
            yield "".join(shape.model_dump_json() + "\n" for shape in shapes)
        else:
            yield csv_rows(shapes)
