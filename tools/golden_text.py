"""How golden files are written: sorted, without prose, and so that differences are read easily."""

import json
from collections.abc import Iterable
from typing import Any

LINE_CHARS_MAX = 90

NAMES = frozenset(
    {"properties", "$defs", "schemas", "headers", "responses", "paths", "securitySchemes"}
)
"""Members of OpenAPI and JSON schema whose own members have names that are no keywords."""


def without_prose(node: Any, *, names: bool = False) -> Any:  # noqa: ANN401 - JSON
    """JSON schema and OpenAPI without descriptions; the order of required members says nothing.

    With `names` the members of this object are named by the interface: none is a keyword.
    """
    if isinstance(node, list):
        return [without_prose(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept: dict[str, Any] = {}
    for name, value in node.items():
        if not names and name in {"description", "summary"} and isinstance(value, str):
            continue
        if not names and name in {"example", "examples", "default", "enum"}:
            kept[name] = value
        elif not names and name == "required" and isinstance(value, list):
            kept[name] = sorted(value)
        else:
            kept[name] = without_prose(value, names=not names and name in NAMES)
    return kept


def as_json(value: object) -> str:
    """A file of JSON that differs in few lines where it differs in little."""
    return _laid_out(value, 0) + "\n"


def _laid_out(value: Any, depth: int) -> str:  # noqa: ANN401 - JSON
    """JSON with sorted members; what fits into a line is one."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    is_nested = isinstance(value, dict | list | tuple)
    if not is_nested or len(line) + depth <= LINE_CHARS_MAX:
        return line
    if isinstance(value, dict):
        named = (f"{json.dumps(n)}: {_laid_out(v, depth + 1)}" for n, v in sorted(value.items()))
        opened, closed, parts = "{", "}", named
    else:
        opened, closed, parts = "[", "]", (_laid_out(one, depth + 1) for one in value)
    inner = " " * (depth + 1)
    return f"{opened}\n{inner}" + f",\n{inner}".join(parts) + f"\n{' ' * depth}{closed}"


def as_lines(found: Iterable[str]) -> str:
    """A file of lines, sorted."""
    return "".join(f"{one}\n" for one in sorted(found))
