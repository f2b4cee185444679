"""The one table of statuses is whole, and nobody has another."""

import ast
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import assay
from assay.common.errors import ServiceError
from assay.server.errors import STATUS
from tests.support.syntax import nodes

SOURCES = Path(__file__).parents[2] / "src/assay"


def kinds(kind: type[ServiceError] = ServiceError) -> Iterator[type[ServiceError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from kinds(one)


def known() -> set[str]:
    """The code of every refusal anywhere in the package."""
    for module in pkgutil.walk_packages(assay.__path__, "assay."):
        if not re.search(r"__main__|migrations", module.name):
            import_module(module.name)
    return {kind.code for kind in kinds() if kind.__module__.startswith("assay.")}


def test_every_refusal_has_a_status_and_no_row_is_left_over() -> None:
    assert known() == set(STATUS)


def test_every_status_is_one_the_specification_or_the_edge_knows() -> None:
    """Source: interface.md#status-codes, #wrapper-errors; RFC 6585, section 5 (431); RFC 9110,
    section 13.1.1 (412). The others are the router's, the edge's and the accounts'.
    """
    spec = {400, 401, 402, 403, 404, 413, 429, 500, 502, 503}
    assert set(STATUS.values()) <= spec | {405, 408, 409, 412, 431}


def test_codes_are_slugs_but_for_the_one_the_specification_writes_large() -> None:
    large = {code for code in STATUS if not re.fullmatch(r"[a-z][a-z0-9_]*", code)}
    assert large == {"MONTHLY_REQUEST_LIMIT_EXCEEDED"}


def test_no_route_makes_a_status_of_its_own() -> None:
    """Refusals are raised; `status_code=` or `HTTPException` in a route would go past the table."""
    routes = sorted(SOURCES.rglob("routes*.py"))
    assert len(routes) >= 15
    for path in routes:
        for node in nodes(path.read_text("utf-8")):
            if isinstance(node, ast.Call):
                assert "status_code" not in {word.arg for word in node.keywords}, path.name
            if isinstance(node, ast.Name):
                assert node.id != "HTTPException", path.name
