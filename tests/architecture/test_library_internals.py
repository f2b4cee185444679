"""What the service uses of a library beyond its documented interface: every name, and why.

A release of such a library may take a name away without saying so. Each use is found in the
sources, has a row with its reason, and exists in what is installed. The library has an upper bound
in `pyproject.toml`, so that a newer release is tried before anybody installs it.
"""

import ast
import importlib
import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assay.http1.request_parser import RequestParser
from assay.wrappers.fast_path import FastCycle
from tests.support.syntax import parsed

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/assay"

UNDOCUMENTED = re.compile(r"uvicorn\.protocols\.")
"""Modules that their library does not document; those with an underscore come on top."""

UNDOCUMENTED_CLASSES = (("uvicorn", "Server"),)
"""Classes of documented modules whose members are not documented."""

NAMED_TUPLES = frozenset({"_replace", "_asdict", "_fields", "_make"})
"""Names with an underscore that are documented."""

_PROTOCOL = "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol"
_CYCLE = "uvicorn.protocols.http.httptools_impl:RequestResponseCycle"
_FLOW = "uvicorn.protocols.http.flow_control:FlowControl"
_H11 = "uvicorn.protocols.http.h11_impl:H11Protocol"
_SERVER = "uvicorn:Server"

INTERNALS = {
    _PROTOCOL: "the base of our protocol, which puts the fast path before the application",
    f"{_PROTOCOL}._start_asgi_task": "says which of several requests is being answered",
    f"{_PROTOCOL}._unset_keepalive_if_required": "ends the time of an idle connection",
    f"{_PROTOCOL}.app": "an argument of `_start_asgi_task`",
    f"{_PROTOCOL}.client": "the caller's address",
    f"{_PROTOCOL}.connection_lost": "frees what is held for the connection",
    f"{_PROTOCOL}.connection_made": "puts our parser and flow control in the place of the server's",
    f"{_PROTOCOL}.cycle": "the last request; a call of the fast path stands in its place",
    f"{_PROTOCOL}.data_received": "replaced: our parser reads one request at a time",
    f"{_PROTOCOL}.expect_100_continue": "set from our parser",
    f"{_PROTOCOL}.flow": "replaced by one that does not resume what is held back",
    f"{_PROTOCOL}.headers": "set from our parser",
    f"{_PROTOCOL}.loop": "timers",
    f"{_PROTOCOL}.on_headers_complete": "begins a request of the ordinary path",
    f"{_PROTOCOL}.on_message_begin": "forgets the request before",
    f"{_PROTOCOL}.on_message_complete": "called for a request that leaves the fast path",
    f"{_PROTOCOL}.on_response_complete": "the next request is read then",
    f"{_PROTOCOL}.parser": "replaced by our parser",
    f"{_PROTOCOL}.pause_writing": "bounds how long a caller leaves an answer unread",
    f"{_PROTOCOL}.resume_writing": "the same",
    f"{_PROTOCOL}.scope": "the HTTP version, and our extensions of the scope",
    f"{_PROTOCOL}.server_state": "counts requests of the fast path too",
    f"{_PROTOCOL}.shutdown": "sends what the fast path has not sent",
    f"{_PROTOCOL}.timeout_keep_alive": "the time of an idle connection",
    f"{_PROTOCOL}.timeout_keep_alive_handler": "closes an idle connection",
    f"{_PROTOCOL}.timeout_keep_alive_task": "whether the server itself closes it",
    f"{_PROTOCOL}.transport": "writes refusals, and closes",
    f"{_PROTOCOL}.url": "set from our parser",
    _CYCLE: "the base of our answers to HTTP/1.0 and to requests whose body is still coming",
    f"{_CYCLE}.chunked_encoding": "off for a caller of HTTP/1.0",
    f"{_CYCLE}.disconnected": "set where a request is refused under way",
    f"{_CYCLE}.expected_content_length": "the length of a body that ends with the connection",
    f"{_CYCLE}.flow": "whether the caller takes what is written",
    f"{_CYCLE}.keep_alive": "whether the connection goes on behind the answer",
    f"{_CYCLE}.message_event": "wakes an application that waits for the body",
    f"{_CYCLE}.more_body": "whether the body is still coming",
    f"{_CYCLE}.response_complete": "whether the next request may be read",
    f"{_CYCLE}.response_started": "whether a refusal would be taken for the answer",
    f"{_CYCLE}.scope": "whom an answer that is left unread is counted for",
    f"{_CYCLE}.send": "writes the answer",
    f"{_CYCLE}.transport": "the connection of the answer",
    f"{_CYCLE}.waiting_for_100_continue": "whether the caller was asked for its body",
    "uvicorn.protocols.http.httptools_impl:STATUS_LINE": "the status lines, ready to be written",
    _FLOW: "the base of ours, which does not resume what is held back",
    f"{_FLOW}.pause_reading": "reads no more from a caller that sends ahead",
    f"{_FLOW}.pause_writing": "of the protocol by the same name",
    f"{_FLOW}.resume_reading": "the same",
    f"{_FLOW}.resume_writing": "of the protocol by the same name",
    f"{_FLOW}.write_paused": "whether the caller takes what is written",
    _H11: "the base of the protocol for metrics",
    f"{_H11}.client": "the caller's address",
    f"{_H11}.connection_lost": "frees the connection's place",
    f"{_H11}.connection_made": "takes a place for the connection",
    f"{_H11}.cycle": "whether a request has come",
    f"{_H11}.loop": "the timer",
    f"{_H11}.transport": "ends the connection",
    _SERVER: "the base of our servers, which run in the loop of the process",
    f"{_SERVER}.capture_signals": "replaced: counts are written down before the process ends",
    f"{_SERVER}.handle_exit": "what a signal does",
    f"{_SERVER}.serve": "runs the server",
    f"{_SERVER}.servers": "closes what listens before the connections end",
    f"{_SERVER}.should_exit": "ends the server",
    f"{_SERVER}.started": "whether requests are answered",
}
"""Module and name, or module, class and member; and why it is used."""

PARTS = frozenset({"httptools"})
"""Libraries that the internals above are written for: a server's protocol for its parser."""

NEVER_CALLED = frozenset({"feed_data", "set_dangerous_leniencies"})
"""What only replaced methods, or the constructor, ask of the server's parser."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLES


def decorators(node: ast.AST) -> set[str]:
    found = getattr(node, "decorator_list", ())
    return {ast.unparse(one) for one in found}


class Names(ast.NodeVisitor):
    """The names that one source imports, uses behind a dot, and makes."""

    def __init__(self, source: str) -> None:
        self.imported: set[tuple[str, str]] = set()
        """Modules of libraries with a name of each; it is empty for the module itself."""
        self.of_self: set[str] = set()
        self.of_others: set[str] = set()
        self.made: set[str] = set()
        self.visit(parsed(source))

    @property
    def used(self) -> set[str]:
        return self.of_self | self.of_others

    def visit_Import(self, node: ast.Import) -> None:
        self.imported |= {(alias.name, "") for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module:
            self.imported |= {(node.module, alias.name) for alias in node.names}

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}:
            self.of_self.add(node.attr)
            if isinstance(node.ctx, ast.Store):
                self.made.add(node.attr)
        else:
            self.of_others.add(node.attr)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.made.add(node.id)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # The type of a variable in a function is never evaluated: the type checker knows it.
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        reaching = {"getattr", "setattr", "hasattr", "delattr"}
        if isinstance(node.func, ast.Name) and node.func.id in reaching:
            named = [n.value for n in node.args[1:2] if isinstance(n, ast.Constant)]
            self.of_others |= {str(name) for name in named}
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        (self.of_others if "override" in decorators(node) else self.made).add(node.name)
        self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.made.add(node.name)
        self.generic_visit(node)


def members(cls: type) -> frozenset[str]:
    """What a class and its instances have."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    own = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }
    return frozenset(own | {name for name in dir(cls) if not name.startswith("__")})


def inherited(thing: object) -> Iterator[tuple[str, str]]:
    """The undocumented classes that a class of ours is derived from."""
    for cls in inspect.getmro(thing) if inspect.isclass(thing) else ():
        if UNDOCUMENTED.match(f"{cls.__module__}."):
            yield cls.__module__, cls.__name__


def undocumented(names: Names) -> Iterator[tuple[str, str]]:
    """The modules that a source uses beyond what is documented, each with a name of it."""
    for module, name in names.imported:
        parts = module.split(".")
        if parts[0] == "assay":
            yield from inherited(getattr(importlib.import_module(module), name, None))
        elif UNDOCUMENTED.match(f"{module}.") or any(map(is_private, [*parts, name])):
            yield module, name
    for module, name in UNDOCUMENTED_CLASSES:
        if ((module, "") in names.imported and name in names.used) or (
            module,
            name,
        ) in names.imported:
            yield module, name


def uses(names: Names, made: frozenset[str]) -> Iterator[str]:
    """What a source uses beyond what is documented; `made` is what all of the package makes."""
    known: set[str] = set()
    for module, name in undocumented(names):
        yield f"{module}:{name}"
        thing = getattr(importlib.import_module(module), name, None)
        if inspect.isclass(thing):
            of_class = members(thing) & names.used
            known |= of_class
            yield from (f"{module}:{name}.{member}" for member in of_class)
    yield from (n for n in names.of_self - known if is_private(n) and n not in made)
    yield from (n for n in names.of_others - known if is_private(n) and n not in names.made)


@cache
def found() -> frozenset[str]:
    every = [Names(path.read_text("utf-8")) for path in SOURCES.rglob("*.py")]
    made = frozenset(name for names in every for name in names.made)
    return frozenset(use for names in every for use in uses(names, made))


def test_every_use_of_a_librarys_internals_has_a_row_with_its_reason() -> None:
    assert found() - INTERNALS.keys() == set()


def test_no_row_outlives_its_use() -> None:
    assert INTERNALS.keys() - found() == set()


@pytest.mark.parametrize("row", INTERNALS)
def test_what_is_used_exists_in_the_installed_library(row: str) -> None:
    module, _, name = row.partition(":")
    name, _, member = name.partition(".")
    thing = getattr(importlib.import_module(module), name)
    assert not member or member in members(thing)


@pytest.mark.parametrize("library", sorted({re.split("[.:]", row)[0] for row in INTERNALS} | PARTS))
def test_a_library_whose_internals_are_used_has_an_upper_bound(library: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [found] = [one for one in map(Requirement, project["dependencies"]) if one.name == library]
    assert any(one.operator == "<" for one in found.specifier)
    locked = (ROOT / "requirements/runtime.txt").read_text("utf-8")
    pinned = re.search(rf"^{library}==(\S+)", locked, re.MULTILINE)
    assert pinned is not None
    assert found.specifier.contains(pinned[1])
    assert found.specifier.contains(version(library))


def asked_of(attribute: str) -> set[str]:
    """What the server's protocol asks of one of its parts."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(HttpToolsProtocol)))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if ast.unparse(node.value) == f"self.{attribute}"}


@pytest.mark.parametrize(("attribute", "own"), [("cycle", FastCycle), ("parser", RequestParser)])
def test_what_stands_in_a_place_of_the_servers_has_what_the_server_asks_of_it(
    attribute: str, own: type
) -> None:
    asked = asked_of(attribute)
    assert asked
    assert asked - members(own) - NEVER_CALLED == set()


def test_the_search_finds_what_it_is_for() -> None:
    def of(source: str) -> set[str]:
        return set(uses(Names(source), frozenset({"_sock"})))

    assert of("from uvicorn._types import Scope") == {"uvicorn._types:Scope"}
    assert of("from asyncio.log import _secret") == {"asyncio.log:_secret"}
    assert of("transport._sock.close()") == {"_sock"}
    assert of("self._sock.close()") == set()
    assert of("self._ready.append(1)") == {"_ready"}
    assert of("super()._start()") == {"_start"}
    assert of("getattr(loop, '_ready')") == {"_ready"}
    assert of("class A:\n @override\n def _start(self): ...") == {"_start"}
    assert of("parts._replace(path='')") == set()
    assert of("def f(entry):\n entry._left = 1") == {"_left"}
    protocol = "from uvicorn.protocols.http.flow_control import FlowControl\nflow.read_paused"
    assert of(protocol) == {_FLOW, f"{_FLOW}.read_paused"}
    derived = "from assay.http1.server_protocol import EarlyCycle\nclass A(EarlyCycle): x.body"
    assert of(derived) == {_CYCLE, f"{_CYCLE}.body"}
    assert of("import uvicorn\nuvicorn.Server(config).startup()") == {_SERVER, f"{_SERVER}.startup"}
