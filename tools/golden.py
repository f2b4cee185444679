"""Writes the golden files: every string of the service that is seen outside, stored or hashed.

./.venv/bin/python tools/golden.py                    writes them all
./.venv/bin/python tools/golden.py cli log_events     writes these
./.venv/bin/python tools/golden.py --check            prints what differs; status 1 if so

Everything comes from the code as it runs, or from literals of the source; nothing is listed by
hand. `tests/architecture/test_golden_files.py` compares. The evidence in `tests/golden/evidence` is
no output of this program: see `tools/record_evidence.py`.
"""

import argparse
import ast
import asyncio
import difflib
import importlib
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tools import golden_cli, golden_evidence, golden_schema  # noqa: E402
from tools.golden_literals import (  # noqa: E402
    Calls,
    Module,
    arguments,
    byte_strings,
    modules,
    texts,
    values_at,
)
from tools.golden_text import as_json, as_lines, without_prose  # noqa: E402

# All that is known of the service by name: what is imported here, and the table below. Where the
# code gives one of these another name, it is changed here and in the import; no golden file is.
from assay.app import assemble  # noqa: E402
from assay.app.web import openapi_document  # noqa: E402
from assay.audit.service import Action  # noqa: E402
from assay.caller_behaviour.scenarios import SCENARIOS  # noqa: E402
from assay.cli.main import build as build_commands  # noqa: E402
from assay.common.errors import ServiceError  # noqa: E402
from assay.evaluation.model import SignalName  # noqa: E402
from assay.server.errors import STATUS  # noqa: E402
from assay.settings import PREFIX, Settings, load  # noqa: E402
from tests.support.databases import migrated_postgresql, migrated_sqlite  # noqa: E402

LEVELS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
LOGGED: Final = (
    Calls(LEVELS, receivers=frozenset({"log", "_log"})),
    Calls(frozenset({"_warn"})),  # of mail: it is given the log's own method
    Calls(frozenset({"note"}), receivers=frozenset({"_needs"})),  # of paid calls, likewise
)
"""Calls whose first argument is the name of an event."""

STATE: Final = Calls(
    frozenset({"put", "put_if_absent", "get", "take"}), receivers=frozenset({"state", "_state"})
)
"""Calls whose first argument is a key of the state that all processes share."""

SHARED_LIMITS: Final = Calls(
    frozenset({"take", "spend", "release", "use", "has"}),
    receivers=frozenset({"quota_lease", "_quota_lease"}),
)
"""Calls whose first argument is a key of a limit that all processes share."""

LIMIT_NAMES: Final = Calls(frozenset({"rate_limit"}))
"""Calls whose first argument is the name of a limit, which becomes part of its keys."""

SEALED: Final = Calls(frozenset({"seal"}), place=1)
"""Calls whose second argument is what a sealed secret is bound to."""

SIGNED: Final = Calls(frozenset({"_mac", "_is_mac"}))
"""Calls whose first argument is signed."""

LABEL: Final = re.compile(r"[a-z][\w.\-]*(?:[|/]|\\0)|assay\.[\w.\-|]+")
"""Bytes that set one use of a secret, or of a hash, apart from others."""

FORMAT: Final = re.compile(r"assay\.[\w.\-]+\.v\d+/?|assay\.[\w.\-]+[ /|]")
"""Text that names the form of what is hashed or signed."""

MARK: Final = re.compile(r"assay-[a-z][a-z+\-]*")
"""Text by which others recognise what is ours: token types, audiences, probes' values."""

NOT_SEEN: Final = frozenset({"assay-sql", "assay_writes"})
"""Look like such names, and are those of a thread and of a connection's option."""

METRIC: Final = re.compile(r"assay_[a-z_]+")
"""Names of `/metrics`, and of the session cookie."""

SERVER_KEY: Final = re.compile(r"assay:[a-z:]+")
"""What keys on a Valkey server begin with."""

GOLDEN = ROOT / "tests/golden"
SOURCES = ROOT / "src/assay"


@dataclass(frozen=True)
class _Running:
    """What an assembled service of default settings says of itself."""

    openapi: Mapping[str, Any]
    probes: Iterable[str]
    policy: Mapping[str, Any]


@cache
def _running() -> _Running:
    async def look() -> _Running:
        async with assemble(load(log_level="error"), serving=False) as app:
            document = openapi_document(app)
            return _Running(document, tuple(app.probes), app.rules.document())

    with tempfile.TemporaryDirectory() as data, golden_evidence.only_data_in(data):
        return asyncio.run(look())


@cache
def _sources() -> Sequence[Module]:
    return modules(SOURCES)


def openapi() -> str:
    """The interface, without what only people read."""
    return as_json(without_prose(_running().openapi))


def settings() -> str:
    """Every variable, with its type, bounds and default."""
    schema = without_prose(Settings.model_json_schema())
    computed = {n for n, f in Settings.model_fields.items() if f.default_factory is not None}
    rows = {
        PREFIX + name.upper(): {n: v for n, v in row.items() if n != "title"}
        | ({"default": "computed"} if name in computed else {})
        for name, row in schema["properties"].items()
    }
    return as_json(rows)


def errors() -> str:
    """Codes of refusals and their HTTP statuses."""
    for one in _sources():
        if " code" in one.text and any(_has_code(node) for node in ast.walk(one.tree)):
            place = one.path.relative_to(ROOT / "src").with_suffix("")
            importlib.import_module(".".join(place.parts).removesuffix(".__init__"))
    codes = {one.code for one in _subclasses(ServiceError) if one.__module__.startswith("assay.")}
    return as_lines(f"{code} {STATUS[code]}" for code in codes)


def log_events() -> str:
    """Names of what is logged."""
    return as_lines({*arguments(_sources(), *LOGGED), *values_at(_sources(), "event")})


def state_keys() -> str:
    """Keys of what processes share: in the database, and on a Valkey server."""
    found = {
        "limitNames": arguments(_sources(), LIMIT_NAMES),
        "limits": arguments(_sources(), SHARED_LIMITS),
        "server": byte_strings(_sources(), SERVER_KEY),
        "state": arguments(_sources(), STATE),
    }
    return as_json(found)


def labels() -> str:
    """What sets one use of a secret, a hash or a token apart from others."""
    found = {
        "formats": texts(_sources(), FORMAT),
        "labels": byte_strings(_sources(), LABEL),
        "marks": _seen(MARK),
        "sealedFor": arguments(_sources(), SEALED),
        "signed": arguments(_sources(), SIGNED),
    }
    return as_json(found)


def _verdicts() -> Mapping[str, Any]:
    commands = build_commands()
    return golden_evidence.verdicts(GOLDEN / "evidence", commands, migrated_sqlite)


def _seen(wanted: re.Pattern[str]) -> list[str]:
    return [text for text in texts(_sources(), wanted) if text not in NOT_SEEN]


def _has_code(node: ast.AST) -> bool:
    """Whether it is a class that names a code of its own."""
    assigned = node.body if isinstance(node, ast.ClassDef) else ()
    targets = [
        *(target for one in assigned if isinstance(one, ast.Assign) for target in one.targets),
        *(one.target for one in assigned if isinstance(one, ast.AnnAssign)),
    ]
    return any(isinstance(target, ast.Name) and target.id == "code" for target in targets)


def _subclasses(kind: type[ServiceError]) -> Iterable[type[ServiceError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _subclasses(one)


SUBJECTS: Final[Mapping[str, Callable[[], str]]] = {
    "audit_actions.txt": lambda: as_lines(get_args(Action)),
    "cli.txt": lambda: as_lines(golden_cli.rows(build_commands())),
    "errors.txt": errors,
    "labels.json": labels,
    "log_events.txt": log_events,
    "metrics.txt": lambda: as_lines(_seen(METRIC)),
    "openapi.json": openapi,
    "policy.json": lambda: as_json(_running().policy),
    "probes.txt": lambda: as_lines(_running().probes),
    "scenarios.txt": lambda: as_lines(SCENARIOS),
    "schema_postgresql.sql": lambda: golden_schema.postgresql(migrated_postgresql()),
    "schema_sqlite.sql": lambda: golden_schema.sqlite(migrated_sqlite),
    "settings.json": settings,
    "signals.txt": lambda: as_lines(SignalName),
    "state_keys.json": state_keys,
    "verdicts.json": lambda: as_json(_verdicts()),
}
"""By the name of the golden file."""


def difference(name: str) -> str:
    """How the code differs from a golden file: a unified diff, empty where it does not."""
    path = GOLDEN / name
    before = path.read_text("utf-8") if path.exists() else ""
    rows = before.splitlines(keepends=True), SUBJECTS[name]().splitlines(keepends=True)
    return "".join(difflib.unified_diff(*rows, f"tests/golden/{name}", "what the code says now"))


def main() -> int:
    """Write, or compare."""
    parser = argparse.ArgumentParser(description="Golden files of all that is seen outside.")
    parser.add_argument("names", nargs="*", help="files without their endings; default: all")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    chosen = [n for n in SUBJECTS if not options.names or Path(n).stem in options.names]
    differences = [difference(name) for name in chosen] if options.check else []
    sys.stdout.writelines(differences)
    for name in () if options.check else chosen:
        (GOLDEN / name).write_text(SUBJECTS[name](), "utf-8")
    return 1 if any(differences) else 0


if __name__ == "__main__":
    sys.exit(main())
