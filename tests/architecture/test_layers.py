"""What a module may import, by the name of its file and by the feature it belongs to.

`.importlinter` says in which order features import each other; here is what lies inside them. Both
are deny by default: what neither allows is an exception, listed with the reason it is there.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.syntax import nodes, parsed

SOURCES = Path(__file__).parents[2] / "src/assay"

ALLOWED = {
    "sqlalchemy": r"db\.|.*\.store\w*$",
    "alembic": r"db\.",
    "fastapi|starlette": r"server\.|.*\.(?:routes\w*|auth)$",
    "pydantic": r"server\.|settings$|.*\.schemas\w*$",
}
"""Libraries, and the modules that may import them."""

EXCEPTIONS = {
    "app.web": "fastapi|starlette: puts all routes together",
    "app.openapi": "fastapi|starlette, pydantic: writes the document of all routes",
    "cli.unsafe_secrets": "pydantic: secrets among the settings",
    "gate.routes": "pydantic: reads requests on the fast path",
    "probing.clients.mcp": "pydantic: results of the stock library",
    "registries.schemas_parameters": "fastapi|starlette: parameters that routes share",
}
"""Modules, and what else they import, with the reason."""

FEATURES = frozenset(
    path.name
    for path in SOURCES.iterdir()
    if path.is_dir()
    and path.name not in {"__pycache__", "app", "cli", "common", "db", "net", "server"}
)


def imports_of(source: str) -> Iterator[str]:
    """Modules that a source imports, wherever in it."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def imports() -> dict[str, frozenset[str]]:
    paths = [p for p in SOURCES.rglob("*.py") if "versions" not in p.parts]
    return {module_of(p): frozenset(imports_of(p.read_text("utf-8"))) for p in paths}


def uses(library: str, imported: frozenset[str]) -> bool:
    return any(re.match(rf"(?:{library})(?:\.|$)", name) for name in imported)


def is_excepted(module: str, library: str) -> bool:
    return library in EXCEPTIONS.get(module, "").split(":")[0].split(", ")


@pytest.mark.parametrize("library", ALLOWED)
def test_a_library_is_imported_where_it_belongs(library: str) -> None:
    users = {module for module, imported in imports().items() if uses(library, imported)}
    assert users, "nobody imports it any more: remove the row"
    strangers = {m for m in users if not re.match(ALLOWED[library], m)}
    assert {m for m in strangers if not is_excepted(m, library)} == set()


def test_no_exception_outlives_its_reason() -> None:
    for module, text in EXCEPTIONS.items():
        for library in text.split(":")[0].split(", "):
            assert uses(library, imports()[module]), (module, library)


HIDDEN = re.compile(r"assay\.(\w+)(?:\.\w+)*?\.((?:store|routes|_)\w*)(?:\.|$)")
SCHEMAS = re.compile(r"assay\.(\w+)\.(schemas\w*)(?:\.|$)")
COMPOSERS = ("app", "cli", "__main__")
"""Who puts features together may import all of them."""

WRITES_AUDIT = "assay.audit.store.record"
"""Any store may add a line to the trail, in its own transaction."""

BORROWED = {
    "admin.routes": "analytics.routes: the same filters of the same lists",
    "admin.store": "accounts, analytics, audit, payments: views of the platform, an end of all",
    "admin.store_retention": "analytics, evaluation, payments, wrappers: removes old rows by turns",
    "analytics.store_analytics": "payments: what is being settled",
    "pages.markdown": "evaluation: writes what its public responses hold",
    "pages.routes": "evaluation: the same list, report and history",
    "pages.views": "evaluation: draws what its public responses hold",
    "key_agents.store": "reputation: what was spent at other sellers",
}
"""Stores and routes that use those of other features, with the reason."""


def hidden(module: str, imported: frozenset[str]) -> Iterator[str]:
    """Modules of other features that these may not import."""
    feature, _, inside = module.partition(".")
    for name in imported:
        found = HIDDEN.match(name)
        if found and found[1] in FEATURES and found[1] != feature and not found[2].startswith("__"):
            is_audit = name in {WRITES_AUDIT, "assay.audit.store"} and "store" in inside
            if not is_audit:
                yield name
        shown = SCHEMAS.match(name)
        may_show = re.match(r"(?:schemas|routes)", inside.rpartition(".")[2])
        if shown and shown[1] in FEATURES and shown[1] != feature and not may_show:
            yield name


def test_nobody_imports_what_another_feature_hides() -> None:
    found = {
        (module, name)
        for module, imported in imports().items()
        if not module.startswith(COMPOSERS)
        for name in hidden(module, imported)
        if name.removeprefix("assay.").split(".")[0] not in borrowed(module)
    }
    assert sorted(found) == []


def borrowed(module: str) -> set[str]:
    """The features whose hidden modules this one may use."""
    return {name.split(".")[0] for name in BORROWED.get(module, "").split(":")[0].split(", ")}


def test_nobody_borrows_what_it_no_longer_uses() -> None:
    used = {m: {n.split(".")[1] for n in hidden(m, imports()[m])} for m in BORROWED}
    assert used == {module: borrowed(module) for module in BORROWED}


HTTP1 = {
    "client": "UpstreamPool UpstreamsByOperator",
    "connections": "ALWAYS_ANSWERED BOUNDS ConnectionBounds ConnectionCaps Connections PIECE_BYTES",
    "host": "UpstreamConnections",
    "model": (
        "Caller DEFAULT_PORTS PreparedUpstreamRequest ResponseHead ResponseSink Scheme Target"
        " Upstream UpstreamExchange UpstreamFailed UpstreamRequest UpstreamResponse agent_at"
        " anonymous_at payer_at upstream_failed"
    ),
    "request_parser": "RequestParser",
    "server_protocol": "ServerProtocol",
}
"""What the rest of the package uses of the HTTP/1.1 engine; everything else of it is its own."""


def test_the_http1_engine_shows_no_more_than_is_listed() -> None:
    shown = {f"assay.http1.{module}.{n}" for module, ns in HTTP1.items() for n in ns.split()}
    used = {
        name
        for module, imported in imports().items()
        if not module.startswith("http1")
        for name in imported
        if re.match(r"assay\.http1\.\w+\.", name)
    }
    assert used == shown


POOLS = re.compile(r"\bUpstreamPool\(([^,]*),")
CONNECTS = r"\b(?:create_connection|open_connection|sock_connect|connect_ex|create_datagram_\w+)\b"


def test_the_client_pool_connects_to_nothing_by_itself() -> None:
    """`http1` sends on what it is given; only the egress guard's dialer is given to it."""
    own = [path for path in (SOURCES / "http1").glob("*.py") if re.search(CONNECTS, read(path))]
    assert own == []
    made = [one for path in SOURCES.rglob("*.py") for one in POOLS.findall(read(path))]
    assert set(made) == {"dialer.connect", "self._dialer.connect"}
    dialers = [path for path in SOURCES.rglob("*.py") if POOLS.search(read(path))]
    assert all("dialer = UpstreamDialer(" in read(path) for path in dialers)


def read(path: Path) -> str:
    return path.read_text("utf-8")


def test_the_rules_find_what_they_are_for() -> None:
    assert list(hidden("gate.service", frozenset({"assay.webhooks.store.SqlWebhookStore"})))
    assert list(hidden("gate.service", frozenset({"assay.webhooks.schemas"})))
    assert not list(hidden("gate.schemas", frozenset({"assay.webhooks.schemas"})))
    assert not list(hidden("gate.service", frozenset({"assay.webhooks.model", "assay.gate.store"})))
    assert uses("fastapi|starlette", frozenset({"starlette.requests"}))
    assert not uses("pydantic", frozenset({"pydantic_settings", "pydantic_core.from_json"}))


def defined(source: str) -> set[str]:
    """The public types that a module defines."""
    found: set[str] = set()
    for node in parsed(source).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if re.match(r"[A-Z][a-z0-9]", name)}


def test_a_type_that_others_import_has_a_name_of_its_own() -> None:
    """One name, one meaning: whoever searches for it finds one definition."""
    paths = [p for p in SOURCES.rglob("*.py") if "versions" not in p.parts]
    types = {module_of(p): defined(p.read_text("utf-8")) for p in paths}
    shared = {
        (name, home)
        for module, imported in imports().items()
        for home, _, name in (one.removeprefix("assay.").rpartition(".") for one in imported)
        if name in types.get(home, ()) and home.split(".")[0] != module.split(".")[0]
    }
    homes = {
        name: sorted(home for home, names in types.items() if name in names) for name, _ in shared
    }
    assert len(homes) > 400
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
    assert defined("class Gate: ...\nKind: str = ''\n_Own = int\nLIMIT = 3") == {"Gate", "Kind"}
