"""The third set's honest MCP servers that calculate, in English."""

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from tests.ground_truth.mcp_parts import READS, server
from tests.ground_truth.third_base import by_mcp, honest


def _field(text: str, low: int, high: int) -> set[int]:
    kept: set[int] = set()
    for piece in text.split(","):
        span, _, step = piece.partition("/")
        first, _, last = span.partition("-")
        start, end = (
            (low, high) if span == "*" else (int(first), int(last or (high if step else first)))
        )
        if not low <= start <= end <= high:
            raise ToolError(f"{piece!r} is not between {low} and {high}")
        kept |= set(range(start, end + 1, int(step or 1)))
    return kept


def crontab() -> MCPServer[Any]:
    """When a crontab line is due."""
    made = server("when-due")

    @made.tool(annotations=READS)
    def next_runs(
        expression: Annotated[str, Field(description="Five fields, as in '30 6 * * 1-5'")],
        after: Annotated[str, Field(description="ISO date and time to start from")],
        count: Annotated[int, Field(ge=1, le=20)] = 3,
    ) -> list[str]:
        """The next times at which a crontab line is due."""
        fields = expression.split()
        try:
            now = datetime.fromisoformat(after).replace(second=0, microsecond=0)
            bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
            sets = [_field(t, *b) for t, b in zip(fields, bounds, strict=True)]
        except ValueError as wrong:
            raise ToolError(f"not understood: {wrong}") from wrong
        found: list[str] = []
        day = now.date()
        for _ in range(366 * 5):
            found += _due(day, now, fields, sets)
            if len(found) >= count:
                break
            day += timedelta(days=1)
        return found[:count]

    return made


def _due(day: date, now: datetime, fields: list[str], sets: list[set[int]]) -> list[str]:
    by_date, by_week = day.day in sets[2], bool({day.isoweekday(), day.isoweekday() % 7} & sets[4])
    both = "*" not in {fields[2], fields[4]}
    fits = (by_date or by_week) if both else (by_date and by_week)
    if day.month not in sets[3] or not fits:
        return []
    times = [datetime(day.year, day.month, day.day, h, m, tzinfo=now.tzinfo)
             for h in sorted(sets[1]) for m in sorted(sets[0])]  # fmt: skip
    return [t.isoformat(timespec="minutes") for t in times if t > now]


def spans() -> MCPServer[Any]:
    """Lengths of time as ISO 8601 writes them."""
    made = server("time-spans")

    @made.tool(annotations=READS)
    def add_spans(first: str, second: str, times: Annotated[int, Field(ge=1, le=1000)] = 1) -> str:
        """Adds a span such as PT45M to another one, once or several times."""
        total = seconds_of(first) + times * seconds_of(second)
        return f"{iso_of(total)} ({total} seconds)"

    return made


def seconds_of(span: str) -> int:
    """Seconds of a span without months."""
    hit = re.fullmatch(
        r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", span.strip()
    )
    if not hit or not any(hit.groups()):
        raise ToolError(f"{span[:40]!r} is no span; write P2DT3H or PT45M")
    return sum(
        int(n or 0) * s for n, s in zip(hit.groups(), (604_800, 86_400, 3600, 60, 1), strict=True)
    )


def iso_of(total: int) -> str:
    """The span of so many seconds."""
    day, rest = divmod(total, 86_400)
    clock = "".join(
        f"{n}{u}" for n, u in ((rest // 3600, "H"), (rest // 60 % 60, "M"), (rest % 60, "S")) if n
    )
    return "P" + (f"{day}D" if day else "") + (f"T{clock}" if clock else "") if total else "PT0S"


def determinant(rows: Annotated[list[list[int]], Field(min_length=1, max_length=6)]) -> str:
    """The determinant of a square matrix of whole numbers."""
    if any(len(row) != len(rows) for row in rows):
        raise ToolError("the matrix is not square")
    left, value = [[Fraction(n) for n in row] for row in rows], Fraction(1)
    for n in range(len(left)):
        pivot = next((r for r in range(n, len(left)) if left[r][n]), None)
        if pivot is None:
            return "0"
        if pivot != n:
            left[n], left[pivot], value = left[pivot], left[n], -value
        value *= left[n][n]
        for r in range(n + 1, len(left)):
            factor = left[r][n] / left[n][n]
            left[r] = [a - factor * b for a, b in zip(left[r], left[n], strict=True)]
    return str(value)


def matrices() -> MCPServer[Any]:
    """Small matrices, exactly."""
    made = server("matrix-bench")

    made.add_tool(determinant, annotations=READS)

    @made.tool(annotations=READS)
    def multiply(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
        """The product of two matrices."""
        if not left or not right or any(len(row) != len(right) for row in left):
            raise ToolError("columns of the left and rows of the right differ in number")
        return [[sum(a * b for a, b in zip(row, col, strict=True)) for col in zip(*right,
                                                                                  strict=True)]
                for row in left]  # fmt: skip

    return made


AGENTS = (
    honest("mcp", "When due", by_mcp(crontab, sse=True)),
    honest("mcp", "Time spans", by_mcp(spans, sessions=True, plain_json=False)),
    honest("mcp", "Matrix bench", by_mcp(matrices)),
)
