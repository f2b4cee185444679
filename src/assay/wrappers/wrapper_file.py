"""Reads and writes the file that declares an operator's wrappers (docs/wrappers.md).

The file is YAML 1.1 as PyYAML reads it, or JSON. It is read as data only: no aliases, no tags, no
deep nesting, at most `FILE_BYTES_MAX` bytes. Its entries are validated as bodies of
POST /operator/endpoints are (interface.md#wrapper-body).
"""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from assay.common.errors import InvalidRequest, ServiceError
from assay.common.json import JsonValue
from assay.server.route import read
from assay.wrappers import schemas as wire
from assay.wrappers.endpoint_rules import NewEndpoint
from assay.wrappers.matching import route_key
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import KEPT_MAX

_UNTYPED: Final[Any] = yaml
"""The module, for functions whose stubs leave types out."""

FILE_BYTES_MAX: Final = 1024 * 1024
DEPTH_MAX: Final = 8
_TAGS: Final = frozenset({"str", "int", "float", "bool", "null", "seq", "map"})
_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_SECRET_FILE: Final = "upstreamAuthSecretFile"  # noqa: S105 - the name of a key
_WRITTEN: Final = (
    *("path", "method", "pricePerCall", "description", "rateLimit", "targetUrl"),
    *("paymentProtocol", "paymentNetwork", "payoutAddress", "trustEnabled", "minScore"),
    *("coldStart", "identityProof", "settle", "maxBodyBytes", "timeoutMs"),
    *("upstreamAuthHeader", "passResponseHeaders", "corsOrigins"),
    *("pricing", "freeQuota", "enforce", "active"),
)
_KEYS: Final = (*_WRITTEN, _SECRET_FILE)
_NESTED: Final = ("minTier", "pricePerCall", "rateLimit", "calls", "per")
"""Members of entries of `pricing`, and of `freeQuota`."""


class BadWrapperFile(ServiceError):
    """The file does not declare wrappers; the message has the line."""

    code = "invalid_request"


@dataclass(frozen=True, slots=True)
class DeclaredWrapper:
    """An entry of the file. `asked.auth_secret` is None if the stored secret stays."""

    line: int
    asked: NewEndpoint

    @property
    def key(self) -> str:
        """Return what identifies the wrapper: its method and path, without parameters' names."""
        return route_key(self.asked.method, self.asked.path)


def parse(text: bytes, secret_of: Callable[[str], str]) -> Sequence[DeclaredWrapper]:
    """Return the wrappers that the file declares, in its order.

    `secret_of` returns the content of a file with a secret. Raises `BadWrapperFile`.
    """
    if len(text) > FILE_BYTES_MAX:
        raise BadWrapperFile(f"the file has more than {FILE_BYTES_MAX:,} bytes")
    try:
        root = _composed(text.decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        raise BadWrapperFile(f"line {line}: this is not YAML in UTF-8") from error
    members = _members(root, ("wrappers",))
    entries = members.get("wrappers")
    if not isinstance(entries, yaml.SequenceNode):
        raise _bad(root, "needs `wrappers`, a list")
    if len(entries.value) > KEPT_MAX:
        raise _bad(entries, f"has more than {KEPT_MAX:,} wrappers")
    declared = [_declared(node, secret_of) for node in entries.value]
    lines: dict[str, int] = {}
    for one in declared:
        if one.key in lines:
            message = f"line {one.line}: line {lines[one.key]} has this method and path already"
            raise BadWrapperFile(message)
        lines[one.key] = one.line
    return declared


def render(configs: Sequence[WrapperConfig]) -> str:
    """Return the file that declares these wrappers. It contains no secrets."""
    entries: list[dict[str, Any]] = []
    for config in sorted(configs, key=lambda c: (c.path, c.method)):
        shown = wire.endpoint(config).model_dump(by_alias=True, mode="json")
        entry = {name: shown[name] for name in _WRITTEN if shown[name] not in (None, [], "")}
        if config.active:
            del entry["active"]  # so is every entry that does not say otherwise
        if config.pricing:
            entry["pricing"] = [
                {name: value for name, value in _priced(one).items() if value is not None}
                for one in shown["pricing"]
            ]
        entries.append(_priced(entry))
    return yaml.safe_dump({"wrappers": entries}, sort_keys=False, allow_unicode=True)


def _priced(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {**shown, "pricePerCall": float(shown["pricePerCall"])}


def _composed(text: str) -> yaml.Node:
    """Return the document's tree, which is no deeper than `DEPTH_MAX`."""
    depth = 0
    for event in _UNTYPED.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise BadWrapperFile(f"line {line}: anchors and aliases are not accepted")
        if getattr(event, "tag", None) is not None:
            raise BadWrapperFile(f"line {line}: tags are not accepted")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise BadWrapperFile(f"line {line}: is nested more than {DEPTH_MAX} deep")
    root: yaml.Node | None = _UNTYPED.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        raise BadWrapperFile("line 1: the file is empty")
    return root


def _members(node: yaml.Node, known: Sequence[str]) -> dict[str, yaml.Node]:
    """Return a mapping's members. Raises `BadWrapperFile` for unknown and repeated keys."""
    if not isinstance(node, yaml.MappingNode):
        raise _bad(node, "must be a mapping of names to values")
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else ""
        if name not in known:
            near = difflib.get_close_matches(name[:64], known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise _bad(key, f"unknown key {name[:64]!r}{hint}")
        if name in found:
            raise _bad(key, f"{name} is given twice")
        found[name] = value
    return found


def _declared(node: yaml.Node, secret_of: Callable[[str], str]) -> DeclaredWrapper:
    values = {name: _value(one) for name, one in _members(node, _KEYS).items()}
    if not values.get("targetUrl"):
        raise _bad(node, "targetUrl: is needed: where requests are forwarded to")
    secret_file = values.pop(_SECRET_FILE, None)
    if values.get("upstreamAuthHeader") is not None:
        values["upstreamAuthType"] = "header"
    if secret_file is not None:
        if not isinstance(secret_file, str) or "upstreamAuthType" not in values:
            raise _bad(node, f"{_SECRET_FILE}: is a file's path, beside upstreamAuthHeader")
        values["upstreamAuthSecret"] = secret_of(secret_file)
    try:
        body = json.dumps(values, allow_nan=False).encode()
        asked = read(wire.EndpointRequest, body).new(body)
    except ValueError as error:
        raise _bad(node, "has a number that is not finite") from error
    except InvalidRequest as error:
        details: Any = error.extras["details"]
        found = "; ".join(f"{one['loc'][-1]}: {one['message']}" for one in details)
        raise _bad(node, found or error.message) from error
    return DeclaredWrapper(node.start_mark.line + 1, replace(asked, is_earlier_form=False))


def _value(node: yaml.Node) -> JsonValue:
    """Return a node's value, if it is one that JSON has."""
    if isinstance(node, yaml.SequenceNode):
        return [_value(one) for one in node.value]
    if isinstance(node, yaml.MappingNode):
        return {name: _value(one) for name, one in _members(node, _NESTED).items()}
    if not isinstance(node, yaml.ScalarNode) or node.tag.removeprefix(_TAG_PREFIX) not in _TAGS:
        raise _bad(
            node, "must be text, a number, true, false, null, a list or a mapping; quote dates"
        )
    try:
        return _UNTYPED.constructor.SafeConstructor().construct_object(node)
    except (ValueError, yaml.YAMLError) as error:
        raise _bad(node, "is not a value of its type; quote it if it is text") from error


def _bad(node: yaml.Node, message: str) -> BadWrapperFile:
    return BadWrapperFile(f"line {node.start_mark.line + 1}: {message}")
