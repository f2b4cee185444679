"""A loopback indexer of the registry: `/v2/graphql` and `/rest/v1`, as the public one has them.

with node(registry) as rpc, indexer(registry) as index:
    ...                                        # whatever speaks to index.url
    index.faults.on(gone(), only="rest")       # this host has its REST side off
    index.shift = 100                          # other sequential ids than elsewhere
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.raw_server import Request
from tests.support.solana import loopback
from tests.support.solana.indexer_graphql import execute
from tests.support.solana.indexer_rows import Row, tables
from tests.support.solana.loopback import JSON, Answer, Fault, Faults, as_json, status
from tests.support.solana.registry import Registry

ROWS_MAX, OFFSET_MAX = 1000, 10_000
UNSHOWN = {"order", "limit", "offset", "select"}


def gone() -> Fault:
    """REST is switched off on this host."""
    return status(410, JSON, body=b'{"error":"REST API is disabled; use /v2/graphql"}')


def graphql_error(message: str = "Internal server error", code: str | None = None) -> Fault:
    """200, and nothing but `errors`."""
    error: dict[str, Any] = {"message": message}
    error |= {} if code is None else {"extensions": {"code": code}}
    return status(200, JSON, body=json.dumps({"data": None, "errors": [error]}).encode())


@dataclass(repr=False)
class Indexer:
    registry: Registry
    shift: int = 0
    """Added to every sequential id: they differ between deployments."""
    service: loopback.Service | None = None

    @property
    def url(self) -> str:
        assert self.service is not None
        return self.service.url

    @property
    def faults(self) -> Faults:
        """`only` is `graphql`, `rest` or `health`."""
        assert self.service is not None
        return self.service.faults

    @property
    def requests(self) -> list[Request]:
        assert self.service is not None
        return self.service.requests

    def answer(self, request: Request) -> Answer:
        kind, path = _kind(request), urlsplit(request.target).path
        if kind == "health":
            return as_json({"status": "ok" if path == "/health" else "ready"})
        if kind == "graphql":
            if request.method != "POST":
                return as_json({"errors": [{"message": "POST only"}]}, 405)
            return self._graphql(request)
        if kind == "rest":
            return self._rest(path.removeprefix("/rest/v1/"), urlsplit(request.target).query)
        return as_json({"error": "Not found"}, 404)

    def _graphql(self, request: Request) -> Answer:
        try:
            asked = json.loads(request.body)
        except ValueError:
            return as_json({"errors": [{"message": "Body is invalid JSON."}]}, 400)
        return as_json(execute(tables(self.registry, self.shift), asked))

    def _rest(self, table: str, query: str) -> Answer:
        found = tables(self.registry, self.shift).get(table)
        if found is None:
            return as_json({"error": "Not found"}, 404)
        asked = dict(parse_qsl(query))
        for column, wanted in asked.items():
            if column in UNSHOWN:
                continue
            if found and column not in found[0]:
                return as_json({"message": f"column {table}.{column} does not exist"}, 400)
            found = [row for row in found if _shown(row[column]) == wanted.removeprefix("eq.")]
        return as_json(_part(found, asked))


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _part(rows: list[Row], asked: dict[str, str]) -> list[Row]:
    if "order" in asked and rows:
        column, _, direction = asked["order"].partition(".")
        numeric = column.endswith("_id")
        rows = sorted(
            rows,
            key=lambda row: int(row[column] or 0) if numeric else row[column],
            reverse=direction == "desc",
        )
    first = min(int(asked.get("offset", 0)), OFFSET_MAX)
    return rows[first:][: min(int(asked.get("limit", 100)), ROWS_MAX)]


def _kind(request: Request) -> str:
    path = urlsplit(request.target).path
    if path in {"/health", "/ready"}:
        return "health"
    return "graphql" if path == "/v2/graphql" else "rest" if path.startswith("/rest/v1/") else path


@contextmanager
def indexer(registry: Registry, shift: int = 0) -> Generator[Indexer]:
    made = Indexer(registry, shift)
    made.service = loopback.Service(made.answer, _kind)
    with loopback.running(made.service):
        yield made
