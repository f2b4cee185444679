"""Reads the services and claims of a registration file, in every known shape. Pure.

Cleans texts and addresses of a registration file for display and for calls.

Reads members of an object in a registration file, in their known spellings.

No service is dropped because of its name: probes find out which protocol it speaks.

Reads the `registrations` of a file: the agents it claims to belong to.

An agent registry is written in CAIP-10, `eip155:{chainId}:{address}`. Source: EIP-8004.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.model import ClaimedRegistration, Note, Service, described, quoted
from assay.registries.registration_json import load_inner

TEXT_CHARS_MAX = 2000
URL_CHARS_MAX = 2048

_PLACEHOLDER = re.compile(
    r"(?:tbd|tba|todo|n/?a|none|null|undefined|nil|placeholder|coming[ _-]soon|-+|\.+|[a-z]+://)|"
    r".*(?:[{}<>]|\$\().*",
    re.IGNORECASE | re.DOTALL,
)


def text_of(value: JsonValue) -> str:
    """Remove control, format and bidirectional characters (Unicode categories C*); cut to size."""
    if not isinstance(value, str):
        return ""
    return "".join(c for c in value[:TEXT_CHARS_MAX] if c in "\n\t" or _shows(c)).strip()


def url_of(value: JsonValue) -> str:
    """Return a URL unchanged, or nothing if it is too long or has non-visible characters."""
    if not isinstance(value, str):
        return ""
    stripped = value.strip()
    if len(stripped) > URL_CHARS_MAX:
        return ""
    return stripped if all(_shows(c) and not c.isspace() for c in stripped) else ""


def _is_placeholder(text: str) -> bool:
    """Return whether a text is a placeholder that its author meant to replace."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def _shows(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")


class Members:
    """An object's members. The first name asked for is the correct one; others are a problem.

    Names are compared exactly first, then without regard to capitals, `_` and `-`. The result does
    not depend on the order of the members.
    """

    def __init__(self, raw: JsonObject, where: str, note: Note) -> None:
        self._raw = raw
        self._where = where
        self._note = note
        self._folded: Mapping[str, str] = {_folded(key): key for key in sorted(raw, reverse=True)}

    def at(self, name: str) -> str:
        """Return the path of a member with this name."""
        return f"{self._where}.{name}" if self._where else name

    def get(self, *names: str) -> JsonValue:
        """Return the first member of these names that exists and is not empty, else None."""
        key = self.key(*names)
        if key is None:
            return None
        if key != names[0]:
            found = f"the member {quoted(key)}"
            self._note(self.at(names[0]), found, f"the member {quoted(names[0])}")
        return self._raw[key]

    def key(self, *names: str) -> str | None:
        """Return its spelling here; None if it is absent, null or an empty list or object."""
        for name in names:
            if _is_there(self._raw.get(name)):
                return name
        for name in names:
            key = self._folded.get(_folded(name))
            if key is not None and _is_there(self._raw[key]):
                return key
        return None

    def lacking(self, name: str) -> str:
        """Return what was found in place of a missing member: `nothing` or `null`."""
        return described(self._raw[name]) if name in self._raw else "nothing"


def _is_there(value: JsonValue) -> bool:
    return value is not None and value not in ([], {})


def _folded(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "").strip()


SERVICES_MAX = 64

UNNAMED = "unnamed"
"""The name of a service without one."""

NAMES = ("name", "type", "protocol", "kind", "title", "label", "protocolBinding", "id")
ENDPOINTS = (
    "endpoint",
    "url",
    "uri",
    "serviceEndpoint",
    "value",
    "href",
    "address",
    "baseUrl",
    "link",
    "location",
)
_EXPECTED = "a list of objects, each with name and endpoint"
_ONE = "an object with name and endpoint"
_ONE_URL = "one URL"
_NESTED_MAX = 2
_ADDRESSES_MAX = 8
_HAS_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:.+", re.IGNORECASE | re.DOTALL)
_NO_URL = re.compile(r"0x[0-9a-f]{40}|[^/@]+@[^/@]+|[^/]+\.(?:eth|sol|crypto|box)", re.IGNORECASE)
"""Addresses of wallets, e-mail addresses and names: none of them has a scheme."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A candidate service: its path in the file, and the name that a map gives it."""

    where: str
    name: str
    value: JsonValue
    is_bare: bool = False
    """Whether it is only an address, if that is recorded already or normal for a map of names."""


def read_services(listed: JsonValue, note: Note, where: str = "services") -> tuple[Service, ...]:
    """Return every service with an address, in the order of the file.

    Maps in order of their keys.
    """
    rows = list(islice(_rows(listed, where, note), SERVICES_MAX + 1))
    if len(rows) > SERVICES_MAX:
        count = len(listed) if is_array(listed) or is_object(listed) else len(rows)
        note(where, f"{count} services", f"at most {SERVICES_MAX}; the others are not read")
    found: dict[Service, None] = {}
    for row in rows[:SERVICES_MAX]:
        for service in _services(row, note):
            if service in found:
                note(row.where, "the same service again", "every service once")
            elif len(found) < SERVICES_MAX:
                found[service] = None
    return tuple(found)


def _rows(listed: JsonValue, where: str, note: Note, depth: int = 0) -> Iterator[_Row]:
    if is_array(listed):
        for number, item in enumerate(listed):
            place = f"{where}[{number}]"
            if not is_array(item):
                yield _Row(place, "", item)
                continue
            note(place, described(item), _ONE)
            if depth < _NESTED_MAX:
                yield from _rows(item, place, note, depth + 1)
    elif is_object(listed):
        note(where, described(listed), _EXPECTED)
        yield from _of_map(listed, where)
    elif isinstance(listed, str) and (inner := _within(listed, note)) is not None:
        note(where, "a text with JSON in it", _EXPECTED)
        yield from _rows(inner, where, note, depth + 1)
    else:
        note(where, described(listed), _EXPECTED)
        if isinstance(listed, str):
            yield _Row(where, "", listed, is_bare=True)


def _of_map(listed: JsonObject, where: str) -> Iterator[_Row]:
    members = Members(listed, where, _silent)
    if members.key(*ENDPOINTS) and members.key(*NAMES):
        yield _Row(where, "", listed)
        return
    for name, value in sorted(listed.items()):
        yield _Row(f"{where}.{name}", name, value, is_bare=True)


def _within(text: str, note: Note) -> JsonValue:
    """Return the list or object that a text contains, if it does."""
    return load_inner(text, note) if text.lstrip()[:1] in {"[", "{"} else None


def _services(row: _Row, note: Note) -> Iterator[Service]:
    if is_object(row.value):
        yield from _service_of_object(row, row.value, note)
        return
    values = list(row.value)[:_ADDRESSES_MAX] if is_array(row.value) else [row.value]
    if is_array(row.value) or not row.is_bare:
        note(row.where, described(row.value), _ONE)
    elif not isinstance(row.value, str):
        note(row.where, described(row.value), _ONE_URL)
    for value in values:
        if isinstance(value, str) and (endpoint := _endpoint(value, row.where, note)):
            yield Service(text_of(row.name) or UNNAMED, endpoint)


def _service_of_object(row: _Row, raw: JsonObject, note: Note) -> Iterator[Service]:
    members = Members(raw, row.where, note)
    name, place = _name(row, raw, members, note), members.at("endpoint")
    if _is_solana(raw):
        value: JsonValue = raw["value"]
    else:
        value = members.get(*ENDPOINTS)
    if value is None:
        note(place, members.lacking("endpoint"), _ONE_URL)
        return
    version = _version(members, note)
    if not isinstance(value, str):
        note(place, described(value), _ONE_URL)
    for text in _addresses(value):
        if endpoint := _endpoint(text, place, note):
            yield Service(name, endpoint, version)


def _name(row: _Row, raw: JsonObject, members: Members, note: Note) -> str:
    if row.name:
        return text_of(row.name) or UNNAMED
    value = raw["type"] if _is_solana(raw) else members.get(*NAMES)
    name = text_of(value)
    if not name:
        found = members.lacking("name") if value is None else described(value)
        note(members.at("name"), found, "the name of what is spoken there, such as A2A or MCP")
    return name or UNNAMED


def _is_solana(raw: JsonObject) -> bool:
    """Return whether it uses `type` and `value`, as the Solana registry's own files do."""
    names = isinstance(raw.get("type"), str) and isinstance(raw.get("value"), str)
    return names and "name" not in raw and "endpoint" not in raw


def _version(members: Members, note: Note) -> str | None:
    value = members.get("version")
    if isinstance(value, int | float) and not isinstance(value, bool):
        note(members.at("version"), described(value), "a text")
        return str(value)[:32]
    return text_of(value) or None


def _addresses(value: JsonValue) -> Iterator[str]:
    """Yield the texts of an address, which may be a list or an object of one or several."""
    if isinstance(value, str):
        yield value
    elif is_array(value):
        for one in value[:_ADDRESSES_MAX]:
            if isinstance(one, str):
                yield one
    elif is_object(value):
        key = Members(value, "", _silent).key(*ENDPOINTS)
        chosen = [value[key]] if key else [one for _, one in sorted(value.items())]
        for one in chosen[:_ADDRESSES_MAX]:
            if isinstance(one, str):
                yield one


def _endpoint(value: str, where: str, note: Note) -> str:
    """Return the address if it may be one, else an empty text."""
    endpoint = url_of(value)
    if not endpoint or _is_placeholder(endpoint):
        note(where, described(value), "a URL: visible characters, at most 2048, no placeholder")
        return ""
    if endpoint != value:
        note(where, f"white space around {described(value)}", "the URL alone")
    elif not _HAS_SCHEME.fullmatch(endpoint) and not _NO_URL.fullmatch(endpoint):
        note(where, described(value), "a URL with its scheme, such as https://")
    return endpoint


def _silent(where: str, found: str, expected: str) -> None:
    """Record nothing."""
    del where, found, expected


CLAIMS_MAX = 64

_IDS = ("agentId", "tokenId", "id")
_REGISTRIES = (
    "agentRegistry",
    "registry",
    "identityRegistry",
    "registryAddress",
    "contractAddress",
    "contract",
)
_CHAINS = ("chainId", "chain", "network")
_CANONICAL = re.compile(
    r"eip155:(?:0|[1-9][0-9]{0,19}):0x[0-9a-fA-F]{40}|solana:[1-9A-HJ-NP-Za-km-z]{32}:[1-9A-HJ-NP-Za-km-z]{32,44}"
)
_LENIENT = re.compile(
    r"(?:caip-?10:|did:pkh:)?(?:eip-?155[:/])?(0x[0-9a-f]{1,16}|[0-9]{1,20})[:/]"
    r"(?:erc-?(?:721|8004):)?(0x[0-9a-f]{40})(?:[:/]([0-9]{1,78}))?/?",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"0x[0-9a-f]{40}", re.IGNORECASE)
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,77}")
_LENIENT_ID = re.compile(r"#?\s*(0x[0-9a-f]{1,64}|[0-9]{1,78})", re.IGNORECASE)
_ID = "the agent's token id as a number"
_CAIP_10 = "eip155:{chainId}:{identityRegistry}"


def read_claims(listed: JsonValue, note: Note) -> tuple[ClaimedRegistration, ...]:
    """Return every registration with an id, in the order of the file."""
    if listed is None:
        return ()
    if is_object(listed):
        note("registrations", described(listed), "a list")
        listed = [listed]
    if not is_array(listed):
        note("registrations", described(listed), "a list")
        return ()
    rows = listed[:CLAIMS_MAX]
    return tuple(c for number, item in enumerate(rows) for c in _claim(number, item, note))


def _claim(number: int, item: JsonValue, note: Note) -> Iterator[ClaimedRegistration]:
    where = f"registrations[{number}]"
    if isinstance(item, str):
        registry, agent_id = _registry(item.strip(), None)
        note(where, described(item), "an object with agentId and agentRegistry")
        if agent_id:
            yield ClaimedRegistration(agent_id, registry)
    elif is_object(item):
        yield from _claim_of_object(where, item, note)
    else:
        note(where, described(item), "an object with agentId and agentRegistry")


def _claim_of_object(where: str, item: JsonObject, note: Note) -> Iterator[ClaimedRegistration]:
    members = Members(item, where, note)
    id_key = members.key(*_IDS)
    raw_id = None if id_key is None else members.get(*_IDS)
    raw_registry = members.get(*_REGISTRIES)
    chain_key = members.key(*_CHAINS)
    written = text_of(raw_registry)
    registry, inner_id = _registry(written, None if chain_key is None else item[chain_key])
    if raw_registry is not None and not _CANONICAL.fullmatch(str(raw_registry)):
        note(members.at("agentRegistry"), described(raw_registry), _CAIP_10)
    if raw_id is None and inner_id:
        yield ClaimedRegistration(inner_id, registry)
        return
    agent_id = _agent_id(raw_id)
    if not agent_id or str(raw_id) != agent_id:
        found = members.lacking("agentId") if raw_id is None else described(raw_id)
        note(members.at("agentId"), found, _ID)
    if agent_id:
        yield ClaimedRegistration(agent_id, registry)


def _registry(text: str, chain: JsonValue) -> tuple[str, str]:
    """Return the registry in CAIP-10, as far as it is clear, and the id that follows it."""
    if _CANONICAL.fullmatch(text):
        return text, ""
    if _ADDRESS.fullmatch(text) and isinstance(chain, int | str) and not isinstance(chain, bool):
        text = f"{chain}:{text}"
    found = _LENIENT.fullmatch(text.strip())
    if found is None:
        return text, ""
    agent_id = str(int(found[3])) if found[3] else ""
    return f"eip155:{_number(found[1])}:{found[2].lower()}", agent_id


def _agent_id(value: JsonValue) -> str:
    """Return the token id, written as number or text; empty if invalid. A flag is invalid."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value >= 0 and value.is_integer() else ""
    if isinstance(value, int):
        return str(value) if value >= 0 else ""
    text = text_of(value)
    if _DECIMAL.fullmatch(text):
        return text
    if found := _LENIENT_ID.fullmatch(text):
        return str(_number(found[1]))
    return "" if _is_placeholder(text) else text


def _number(text: str) -> int:
    return int(text, 16) if text[:2].lower() == "0x" else int(text)
