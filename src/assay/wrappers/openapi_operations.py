"""The operations of an OpenAPI document that a wrapper can answer, and why others cannot. Pure.

Reads versions 2.0 to 3.2. References are followed within the document only, and only where paths
and their parameters are: schemas are never looked at. Source: OpenAPI 3.1, section 4.8.8.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.wrappers.endpoint_rules import DESCRIPTION_CHARS_MAX
from assay.wrappers.matching import METHOD_CHARS_MAX, PATH_CHARS_MAX
from assay.wrappers.openapi_text import BadDocument, shown

OPERATIONS_MAX: Final = 2000
_MEMBERS_MAX: Final = 100
_PARAMETERS_MAX: Final = 200
_HOPS_MAX: Final = 10
_REFERENCE_CHARS_MAX: Final = 500
_URL_CHARS_MAX: Final = 2048
_VARIABLES_MAX: Final = 20
_STEPS_MAX: Final = 1_000_000
"""Of following references in one document: objects that are read, and their members. A document of
2,000 operations with 20 references each takes 300,000; more than these take seconds."""
_READ_CHARS: Final = 4 * DESCRIPTION_CHARS_MAX

_VERSION: Final = re.compile(r"3\.[0-2](?:\.[0-9]{1,3}(?:-[0-9A-Za-z.]{1,16})?)?")
_METHODS: Final = frozenset(
    {"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}
)
_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")

_NOT_NAMED: Final = "is not a GET: name it to import it"
_WEBHOOK: Final = "is a webhook: a call that the API makes"
NOT_ASKED_FOR: Final = ("", _NOT_NAMED, _WEBHOOK)
"""Problems that are no failure: the empty one, and those of operations that nobody asked for."""
_NOT_AN_OBJECT: Final = "is not an object"
_OUTSIDE: Final = "has a $ref that leads out of the document, which is not followed"
_LONG_SERVER: Final = "has a server whose address is too long"
_RELATIVE: Final = "has no server with a whole address: name a target"


@dataclass(frozen=True, slots=True)
class DocumentOperation:
    """An operation as a wrapper would answer it, or the problem that prevents it."""

    name: str
    """Method and path as the document has them, for people."""
    method: str = ""
    path: str = ""
    """The wrapper's path."""
    description: str = ""
    server: str = ""
    """The document's address of the API; empty if a target is given."""
    problem: str = ""
    """Empty if it can be imported, as far as the document shows."""


class _NotImportableError(Exception):
    """The operation cannot be imported; the message says why."""


def operations_of(
    document: JsonObject, named: Sequence[str], *, has_target: bool
) -> Sequence[DocumentOperation]:
    """Return every operation of the document in its order, and those that are only named.

    `named` are operations other than GET to import, such as `POST /pets`. With `has_target` the
    servers of the document are not used. Raises `BadDocument`.
    """
    if not _is_known_version(document):
        raise BadDocument(
            "is not OpenAPI 2.0, 3.0, 3.1 or 3.2, as its member `openapi` or `swagger` should say"
        )
    wanted = {_normal(name): name for name in named}
    reader = _DocumentReader(document, frozenset(wanted), has_target=has_target)
    found: list[DocumentOperation] = []
    for one in reader.operations():
        found.append(one)
        if len(found) > OPERATIONS_MAX:
            raise BadDocument(f"has more than {OPERATIONS_MAX:,} operations")
    if not found:
        raise BadDocument("has no operations")
    missing = (name for raw, name in wanted.items() if raw not in reader.seen)
    reason = "is named, and the document does not have it"
    return [*found, *(DocumentOperation(shown(name), problem=reason) for name in missing)]


def _is_known_version(document: JsonObject) -> bool:
    """Return whether it says that it is of a version that is read here."""
    old, new = (document.get(name) for name in ("swagger", "openapi"))
    return old in ("2.0", 2.0) or (isinstance(new, str) and _VERSION.fullmatch(new) is not None)


def _normal(name: str) -> str:
    """Return the name of an operation as documents are searched for it."""
    method, _, path = name.strip().partition(" ")
    return f"{method.upper()} {path.strip()}"


class _DocumentReader:
    """Reads one document. `seen` are the operations that it has, as they are named."""

    def __init__(self, document: JsonObject, wanted: frozenset[str], *, has_target: bool) -> None:
        self._document = document
        self._wanted = wanted
        self._has_target = has_target
        self.seen: set[str] = set()
        self._targets: dict[str, JsonValue] = {}
        self._steps = 0

    def operations(self) -> Generator[DocumentOperation]:
        """Yield the operations of paths, then the webhooks."""
        for number, (path, item) in enumerate(_members(self._document, "paths").items()):
            if number >= OPERATIONS_MAX:
                raise BadDocument(f"has more than {OPERATIONS_MAX:,} paths")
            if not path.startswith("x-"):
                yield from self._of_path(path, item)
        for name in _members(self._document, "webhooks"):
            yield DocumentOperation(shown(name), problem=_WEBHOOK)

    def _of_path(self, path: str, value: JsonValue) -> Generator[DocumentOperation]:
        try:
            _check_length(path)
            item = self._resolved(value)
        except _NotImportableError as error:
            yield DocumentOperation(shown(path), problem=str(error))
            return
        for key, operation in item.items():
            if key in _METHODS:
                yield self._of_operation(path, item, key, operation)
        for key, operation in _members(item, "additionalOperations").items():
            yield self._of_operation(path, item, key, operation)

    def _of_operation(
        self, path: str, item: JsonObject, key: str, value: JsonValue
    ) -> DocumentOperation:
        method = key[: METHOD_CHARS_MAX + 1].upper()
        raw = f"{method} {path}"
        self.seen.add(raw)
        try:
            operation = _wanted(value, is_wanted=method == "GET" or raw in self._wanted)
            _check_parameters(_names_in(path), self._path_parameters(item, operation))
            server = self._server(item, operation)
        except _NotImportableError as error:
            return DocumentOperation(shown(raw), problem=str(error))
        own = _TEMPLATE.sub(lambda found: "{" + _parameter_name(found[1]) + "}", path)
        return DocumentOperation(shown(raw), method, own, _description(operation, item), server)

    def _path_parameters(self, item: JsonObject, operation: JsonObject) -> Mapping[str, JsonObject]:
        """Return the path parameters by name; those of the operation go first."""
        found: dict[str, JsonObject] = {}
        for holder in (item, operation):
            parameters = holder.get("parameters") or []
            if not is_array(parameters) or len(parameters) > _PARAMETERS_MAX:
                raise _NotImportableError(
                    f"has parameters that are not a list of at most {_PARAMETERS_MAX}"
                )
            for parameter in map(self._resolved, parameters):
                if parameter.get("in") == "path":
                    found[_text(parameter, "name")] = parameter
        return found

    def _server(self, item: JsonObject, operation: JsonObject) -> str:
        """Return the address that the document gives for an operation."""
        own = operation.get("servers") or item.get("servers")
        if self._has_target:
            if own:
                raise _NotImportableError("has a server of its own, which is not the given target")
            return ""
        if "swagger" in self._document:
            url = self._swagger_server(operation)
        else:
            servers = own or self._document.get("servers")
            first = servers[0] if is_array(servers) and servers else None
            url = _url_of(first) if is_object(first) else ""
        if "://" not in url:
            raise _NotImportableError(_RELATIVE)
        return url

    def _swagger_server(self, operation: JsonObject) -> str:
        """Return the address by version 2.0: a scheme, a host and a base path."""
        host = _text(self._document, "host")
        base = "/" + _text(self._document, "basePath").lstrip("/")
        schemes = operation.get("schemes") or self._document.get("schemes") or ["https"]
        known = [one for one in schemes if isinstance(one, str)] if is_array(schemes) else []
        if not host or not known or len(host) + len(base) > _URL_CHARS_MAX:
            return ""
        return f"{'https' if 'https' in known else known[0][:10]}://{host}{base}"

    def _resolved(self, value: JsonValue) -> JsonObject:
        """Return the object that a reference leads to, under the members beside the reference."""
        for _ in range(_HOPS_MAX):
            if not is_object(value):
                raise _NotImportableError(_NOT_AN_OBJECT)
            if len(value) > _MEMBERS_MAX:
                raise _NotImportableError(f"has more than {_MEMBERS_MAX} members")
            self._steps += 1 + len(value)
            if self._steps > _STEPS_MAX:
                raise BadDocument("has more references than are followed in one document")
            if "$ref" not in value:
                return value
            target = self._at(_text(value, "$ref"))
            if is_object(target) and len(target) <= _MEMBERS_MAX:
                beside = {name: one for name, one in value.items() if name != "$ref"}
                target = {**target, **beside}
            value = target
        raise _NotImportableError("has a $ref that leads in a circle")

    def _at(self, reference: str) -> JsonValue:
        """Return the value that a JSON pointer in a fragment leads to (RFC 6901, section 6)."""
        if reference in self._targets:
            return self._targets[reference]
        if not reference.startswith("#"):
            raise _NotImportableError(_OUTSIDE)
        value: JsonValue = self._document
        for part in reference[:_REFERENCE_CHARS_MAX].split("/")[1:]:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            value = value.get(name) if is_object(value) else None
        if value is None or value is self._document:
            raise _NotImportableError("has a $ref that leads to nothing")
        self._targets[reference] = value
        return value


def _check_length(path: str) -> None:
    if len(path) > PATH_CHARS_MAX:
        raise _NotImportableError(f"has more than {PATH_CHARS_MAX} characters")


def _wanted(operation: JsonValue, *, is_wanted: bool) -> JsonObject:
    if not is_wanted:
        raise _NotImportableError(_NOT_NAMED)
    if not is_object(operation):
        raise _NotImportableError(_NOT_AN_OBJECT)
    return operation


def _names_in(path: str) -> Sequence[str]:
    """Return the names of a path's parameters. Raises if a wrapper would match other paths."""
    names: list[str] = []
    for segment in path.split("/"):
        found = _TEMPLATE.fullmatch(segment)
        if found is not None:
            names.append(found[1])
        elif "{" in segment or "}" in segment:
            message = "has a segment in which a parameter stands beside other text: "
            raise _NotImportableError(message + shown(segment))
        elif segment == "*":
            raise _NotImportableError(
                "has the segment *, which a wrapper would read as every path below"
            )
    return names


def _check_parameters(names: Sequence[str], declared: Mapping[str, JsonObject]) -> None:
    """Raise unless exactly these are declared, and each is written as one plain segment."""
    for name, parameter in declared.items():
        style = _text(parameter, "style") or "simple"
        if name not in names:
            message = "declares a path parameter that its path does not have: "
            raise _NotImportableError(message + shown(name))
        if style != "simple":
            message = f"has a path parameter in the style {shown(style)}: "
            raise _NotImportableError(message + shown(name))
        if parameter.get("allowReserved") in (True, "true"):
            message = "has a path parameter that may hold slashes: "
            raise _NotImportableError(message + shown(name))
    for name in names:
        if name not in declared:
            message = "declares no path parameter of this name: "
            raise _NotImportableError(message + shown(name))


def _parameter_name(name: str) -> str:
    """Return the name as paths of wrappers may have it; it matches whatever its name."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:60]
    return "_" + plain if plain[:1].isdigit() else plain


def _url_of(server: JsonObject) -> str:
    """Return the address of a server object, with the defaults of its variables."""
    url, variables = _text(server, "url"), _members(server, "variables")
    if len(url) > _URL_CHARS_MAX or url.count("{") > _VARIABLES_MAX:
        raise _NotImportableError(_LONG_SERVER)

    def default_of(found: re.Match[str]) -> str:
        variable = variables.get(found[1])
        default = _text(variable, "default") if is_object(variable) else ""
        if not default or len(default) > _URL_CHARS_MAX:
            message = f"has a server with the variable {shown(found[1])}, which has no default"
            raise _NotImportableError(message)
        return default

    whole = _TEMPLATE.sub(default_of, url)
    if len(whole) > _URL_CHARS_MAX:
        raise _NotImportableError(_LONG_SERVER)
    return whole


def _description(operation: JsonObject, item: JsonObject) -> str:
    """Return one line about the operation, as descriptions of wrappers may be."""
    texts = (_text(one, key) for one in (operation, item) for key in ("summary", "description"))
    words = " ".join(next((text for text in texts if text.strip()), "")[:_READ_CHARS].split())
    return "".join(c for c in words if c.isprintable())[:DESCRIPTION_CHARS_MAX]


def _members(value: JsonObject, name: str) -> JsonObject:
    """Return a member that is an object; an empty one otherwise."""
    found = value.get(name)
    return found if is_object(found) else {}


def _text(value: JsonObject, name: str) -> str:
    """Return a member that is text; empty otherwise."""
    found = value.get(name)
    return found if isinstance(found, str) else ""
