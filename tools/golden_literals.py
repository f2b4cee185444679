"""Strings of the source that are seen outside or stored: found by what they are, wherever they are.

Nothing here knows a module, a class or a function of the service: whatever has to be known of them
is given by `tools/golden.py`.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HOLE = "{}"
"""Stands for what a key or a label holds that only the running service knows."""

DEPTH_MAX = 6
"""Steps from a key to what it is made of; more would be a circle."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A source file; it is parsed when it is first asked for more than its text."""

    def __init__(self, path: Path, text: str, others: Mapping[str, "Module"]) -> None:
        """`others` are all modules there are, by dotted name."""
        self.path = path
        self.text = text
        self._others = others

    @cached_property
    def tree(self) -> ast.Module:
        """What it consists of."""
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> Sequence[_Function]:
        """Every function of it, methods and inner ones included."""
        return [node for node in ast.walk(self.tree) if isinstance(node, _Function)]

    def origin(self, name: str) -> "Module | None":
        """The module that it imports a name from."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and name in {one.name for one in node.names}:
                return self._others.get(node.module or "")
        return None

    def strings(self) -> Iterator[str | bytes]:
        """Every literal but docstrings, names of temporary folders and of context variables."""
        left_out: set[int] = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.Expr(value=value) | ast.keyword(arg="prefix", value=value):
                    left_out.add(id(value))
                case ast.Call(func=ast.Name(id="ContextVar"), args=[value, *_]):
                    left_out.add(id(value))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                yield from () if id(node) in left_out else (node.value,)


@dataclass(frozen=True)
class Calls:
    """Calls whose argument at `place` is looked at: of these names, on these receivers (or any)."""

    names: frozenset[str]
    receivers: frozenset[str] = frozenset()
    place: int = 0

    def arguments(self, module: Module) -> Iterator[str]:
        """The patterns of what is given to such calls, but those without a literal part."""
        for function in (None, *module.functions) if self._may_be_in(module.text) else ():
            place = _Place(module, function)
            aliases = self._aliases(place.node)
            for node in _own(place.node):
                if (given := self._argument(node, aliases)) is not None:
                    found = _patterns(given, place)
                    yield from (one for one in found if any(letter.isalnum() for letter in one))

    def _may_be_in(self, text: str) -> bool:
        """Whether a file is worth reading: few are."""
        return any(f"{name}(" in text or f".{name} " in text for name in self.names) and (
            not self.receivers or any(f"{one}." in text for one in self.receivers)
        )

    def _argument(self, node: ast.AST, aliases: frozenset[str]) -> ast.expr | None:
        if not isinstance(node, ast.Call) or len(node.args) <= self.place:
            return None
        is_meant = _last_name(node.func) in aliases or self._is_named_by(node.func)
        return node.args[self.place] if is_meant else None

    def _is_named_by(self, node: ast.expr) -> bool:
        of = _last_name(node.value) if isinstance(node, ast.Attribute) else ""
        is_received = not self.receivers or of in self.receivers
        return is_received and _last_name(node) in self.names

    def _aliases(self, function: ast.AST) -> frozenset[str]:
        """Names it gives to what is called: `say = log.info if is_good else log.warning`."""
        return frozenset(
            node.targets[0].id
            for node in _own(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if all(self._is_named_by(one) for one in _alternatives(node.value))
        )


def modules(root: Path) -> Sequence[Module]:
    """Every source file of the package at `root`."""
    found: dict[str, Module] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        found[name] = Module(path, path.read_text("utf-8"), found)
    return list(found.values())


def arguments(sources: Iterable[Module], *calls: Calls) -> list[str]:
    """What is given to these calls, sorted."""
    return sorted({found for one in sources for call in calls for found in call.arguments(one)})


def texts(sources: Iterable[Module], wanted: re.Pattern[str]) -> list[str]:
    """Texts that are written out and that the pattern describes, sorted."""
    begins = re.compile(f"[\"'](?:{wanted.pattern})")
    found = (s for one in sources if begins.search(one.text) for s in one.strings())
    return sorted({s for s in found if isinstance(s, str) and wanted.fullmatch(s)})


def byte_strings(sources: Iterable[Module], wanted: re.Pattern[str]) -> list[str]:
    """The same of bytes, shown as text."""
    begins = re.compile(f"b[\"'](?:{wanted.pattern})")
    found = (s for one in sources if begins.search(one.text) for s in one.strings())
    shown = {_shown(s) for s in found if isinstance(s, bytes)}
    return sorted(text for text in shown if wanted.fullmatch(text))


def values_at(sources: Iterable[Module], key: str) -> list[str]:
    """Texts that stand under this key in a dictionary that is written out, sorted."""
    found: set[str] = set()
    quoted = re.compile(f"[\"']{key}[\"']:")
    for one in (one for one in sources if quoted.search(one.text)):
        for node in (node for node in ast.walk(one.tree) if isinstance(node, ast.Dict)):
            for name, value in zip(node.keys, node.values, strict=True):
                match name, value:
                    case ast.Constant(value=said), ast.Constant(value=str() as text) if said == key:
                        found.add(text)
                    case _:
                        pass
    return sorted(found)


@dataclass(frozen=True)
class _Place:
    """Where an expression stands: names mean what they mean there."""

    module: Module
    function: _Function | None

    @property
    def node(self) -> ast.AST:
        return self.function or self.module.tree

    def returned(self, name: str) -> Iterator[tuple[ast.expr, "_Place"]]:
        """What functions of this name return, those of the file or the one it imports."""
        own = [one for one in self.module.functions if one.name == name]
        origin = None if own else self.module.origin(name)
        for one in own:
            yield from ((value, _Place(self.module, one)) for value in _returned(one))
        if origin is not None:
            yield from _Place(origin, None).returned(name)

    def values(self, name: str) -> Iterator[tuple[ast.expr, "_Place"]]:
        """What a name is assigned: in the function, else in the file, else where it comes from."""
        own = [(value, self) for value in _assigned(self.node, name)]
        yield from own
        if own or (self.function is not None and name in _parameters(self.function)):
            return
        if self.function is not None:
            yield from _Place(self.module, None).values(name)
        elif (origin := self.module.origin(name)) is not None:
            yield from _Place(origin, None).values(name)

    def members(self, name: str) -> Iterator[tuple[ast.expr, "_Place"]]:
        """What an attribute of this name is assigned, or returns as a property."""
        for value in _assigned(self.module.tree, name, is_attribute=True):
            yield value, _Place(self.module, None)
        if any(one.name == name for one in self.module.functions):
            yield from self.returned(name)


def _patterns(node: ast.expr, place: _Place, depth: int = 0) -> Sequence[str]:
    """What an expression can be, with a hole for each part that is not known from the source."""
    if isinstance(node, ast.Constant):
        return [_literal(node.value)]
    if (parts := _parts(node)) is not None:
        made = [""]
        for part in parts:
            made = [begun + more for begun in made for more in _patterns(part, place, depth)]
        return [one.replace(HOLE + HOLE, HOLE) for one in made]
    if depth == DEPTH_MAX:
        return [HOLE]
    found = [
        pattern
        for value, where in _made_from(node, place)
        for pattern in _patterns(value, where, depth + 1)
    ]
    return list(dict.fromkeys(found)) or [HOLE]


def _parts(node: ast.expr) -> Sequence[ast.expr] | None:
    """The parts of what is put together."""
    match node:
        case ast.JoinedStr(values=parts):
            return parts
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [left, right]
        case ast.Await(value=inner) | ast.FormattedValue(value=inner):
            return [inner]
        case ast.Call(func=ast.Attribute(value=inner, attr="encode")):
            return [inner]
        case _:
            return None


def _made_from(node: ast.expr, place: _Place) -> Iterable[tuple[ast.expr, _Place]]:
    """Where its value comes from."""
    match node:
        case ast.IfExp():
            return [(one, place) for one in _alternatives(node)]
        case ast.Call(func=called):
            return place.returned(_last_name(called))
        case ast.Name(id=name):
            return place.values(name)
        case ast.Attribute(attr=name):
            return place.members(name)
        case _:
            return ()


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node but what is inside functions, which are looked at by themselves."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Function):
            yield child
            yield from _own(child)


def _alternatives(node: ast.expr) -> Sequence[ast.expr]:
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def _returned(function: _Function) -> Iterator[ast.expr]:
    for node in _own(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _assigned(place: ast.AST, name: str, *, is_attribute: bool = False) -> Iterator[ast.expr]:
    """Values of assignments to a name, or to an attribute of that name anywhere in `place`."""
    kind = ast.Attribute if is_attribute else ast.Name
    for node in ast.walk(place) if is_attribute else _own(place):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                if isinstance(target, kind) and _last_name(target) == name:
                    yield value


def _parameters(function: _Function) -> set[str]:
    given = function.args
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _literal(value: object) -> str:
    if isinstance(value, bytes):
        return _shown(value)
    return value if isinstance(value, str) else HOLE


def _shown(raw: bytes) -> str:
    return raw.decode("ascii", "backslashreplace").replace("\0", "\\0")
