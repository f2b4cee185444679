"""Parses registration files leniently and reports every deviation. Pure.

Reads other kinds of documents that token URIs point at instead of a registration file.

Agent cards (A2A 0.3 and 1.0), MCP server descriptions and client configurations, OpenAPI, x402
demands, OASF records, plugin manifests and DID documents each declare services in their own way.

Values with one possible meaning are read in all known spellings and shapes. Each deviation from
EIP-8004, "Agent Registration File", becomes a problem with where it is, what was found and what was
expected. The result does not depend on the order of members.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.model import (
    FileProblem,
    Note,
    OnchainAgent,
    Problems,
    RegistrationFile,
    Service,
    described,
    quoted,
)
from assay.registries.registration_json import NotRegistration, load, load_inner
from assay.registries.registration_services import (
    CLAIMS_MAX,
    Members,
    read_claims,
    read_services,
    text_of,
    url_of,
)

_EXPECTED = "a registration file whose services name it"


@dataclass(frozen=True, slots=True)
class OtherDocument:
    """The services and other content of a document of another kind."""

    services: tuple[Service, ...]
    name: JsonValue = None
    description: JsonValue = None


def read_other(raw: JsonObject, source: str, note: Note) -> OtherDocument | None:
    """Return the services of a document of another kind; None for a registration file.

    `source` is the address it came from: a card or description at an http(s) address is itself the
    document that its readers request.
    """
    if any(raw.get(key) for key in ("services", "endpoints")):
        return None
    for is_kind, what, read in _KINDS:
        if is_kind(raw):
            note("file", what, _EXPECTED)
            return read(raw, source if source.lower().startswith(("https:", "http:")) else "", note)
    return None


def _is_card(raw: JsonObject) -> bool:
    has_url = isinstance(raw.get("url"), str)
    if any(is_array(raw.get(key)) for key in ("supportedInterfaces", "additionalInterfaces")):
        return True
    return has_url and any(key in raw for key in ("skills", "protocolVersion", "capabilities"))


def _card(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    name, description = raw.get("name"), raw.get("description")
    listed: list[JsonValue] = [source or raw.get("url")]
    for key in () if source else ("supportedInterfaces", "additionalInterfaces"):
        rows = raw.get(key)
        listed += [row.get("url") for row in rows if is_object(row)] if is_array(rows) else []
    return OtherDocument(_called("A2A", listed, note), name, description)


def _is_mcp(raw: JsonObject) -> bool:
    is_server = is_array(raw.get("remotes")) or is_array(raw.get("packages"))
    return is_object(raw.get("mcpServers")) or is_server


def _mcp(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    del source
    listed: list[JsonValue] = []
    servers, remotes = raw.get("mcpServers"), raw.get("remotes")
    for name, one in sorted(servers.items()) if is_object(servers) else ():
        url = one.get("url") if is_object(one) else None
        if url is None:
            note(f"mcpServers.{name}", "nothing", "the url of a server that others can reach")
        listed.append(url)
    listed += [one.get("url") for one in remotes if is_object(one)] if is_array(remotes) else []
    services = _called("MCP", listed, note)
    if not services and not is_object(servers):
        note("services", "nothing", "a server that others can reach")
    return OtherDocument(services, raw.get("name"), raw.get("description"))


def _openapi(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    servers = raw.get("servers")
    rows = servers if is_array(servers) else ()
    listed: list[JsonValue] = [one.get("url") for one in rows if is_object(one)]
    listed = [source] if source else listed
    info = raw.get("info")
    about: JsonObject = info if is_object(info) else {}
    services = _called("OpenAPI", listed, note)
    return OtherDocument(services, about.get("title"), about.get("description"))


def _x402_document(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    accepts = raw.get("accepts")
    rows = accepts if is_array(accepts) else ()
    listed = [one.get("resource") for one in rows if is_object(one)]
    resource = raw.get("resource")
    listed.append(resource.get("url") if is_object(resource) else None)
    return OtherDocument(_called("x402", listed if any(listed) else [source], note))


def _oasf(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    del source
    rows = raw.get("locators")
    listed: list[JsonValue] = [
        {"name": one.get("type"), "endpoint": one.get("url")}
        for one in (rows if is_array(rows) else ())
        if is_object(one)
    ]
    services = read_services(listed, note, "locators")
    return OtherDocument(services, raw.get("name"), raw.get("description"))


def _plugin(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    del source
    api = raw.get("api")
    url = api.get("url") if is_object(api) else None
    name, description = raw.get("name_for_human"), raw.get("description_for_human")
    return OtherDocument(_called("OpenAPI", [url], note), name, description)


def _did(raw: JsonObject, source: str, note: Note) -> OtherDocument:
    del source
    rows = raw.get("service")
    listed: list[JsonValue] = [
        {"name": one.get("type"), "endpoint": one.get("serviceEndpoint")}
        for one in (rows if is_array(rows) else ())
        if is_object(one)
    ]
    return OtherDocument(read_services(listed, note, "service"), raw.get("name"))


def _called(name: str, listed: list[JsonValue], note: Note) -> tuple[Service, ...]:
    """Return services of one name at those addresses that are valid, each once."""
    found: dict[Service, None] = {}
    for value in listed[:64]:
        if url := url_of(value):
            found[Service(name, url)] = None
        elif value is not None:
            note("services", described(value), "a URL")
    return tuple(found)


_Read = Callable[[JsonObject, str, Note], OtherDocument]
_KINDS: tuple[tuple[Callable[[JsonObject], bool], str, _Read], ...] = (
    (_is_card, "an A2A agent card", _card),
    (_is_mcp, "an MCP server description", _mcp),
    (
        lambda raw: any(isinstance(raw.get(k), str) for k in ("openapi", "swagger")),
        "an OpenAPI description",
        _openapi,
    ),
    (
        lambda raw: "x402Version" in raw and is_array(raw.get("accepts")),
        "an x402 demand",
        _x402_document,
    ),
    (lambda raw: is_array(raw.get("locators")), "a record of OASF", _oasf),
    (
        lambda raw: "schema_version" in raw and is_object(raw.get("api")),
        "a plugin manifest",
        _plugin,
    ),
    (lambda raw: "@context" in raw and is_array(raw.get("service")), "a DID document", _did),
)


TYPE: Final = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"
"""The `type` of a registration file. Source: EIP-8004."""

_KNOWN = frozenset({"type", "name", "services", "endpoints", "registrations", "description"})
_WRAPPERS = ("agent", "agentRegistration", "data", "registration", "result")
_IMAGES = ("image", "imageUrl", "logo", "icon", "iconUrl", "avatar")
_LISTS = ("services", "endpoints", "service", "endpoint")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}
_NUMBER_CHARS_MAX = 100
_SERVICES = "a list of objects, each with name and endpoint"


def parse_registration(body: bytes, source: str = "") -> RegistrationFile:
    """Return the registration file in `body`; its `problems` say what is wrong with it.

    `source` is the address it was read from, or empty. Raises `NotRegistration` if it is not a JSON
    object of bounded size and depth; raises nothing else for any bytes.
    """
    problems = Problems()
    note = problems.note
    whole = _object(load(body, note), note)
    raw = _unwrapped(whole, note)
    other = read_other(raw, source, note)
    members = Members(raw, "", note)
    if other is None and raw.get("type") != TYPE:
        note("type", described(raw["type"]) if "type" in raw else "nothing", TYPE)
    return RegistrationFile(
        size_bytes=len(body),
        name=" ".join(_name(other, members, note).split()),
        description=_description(other, members, note),
        image=_image(members, note, is_required=other is None),
        services=_services(raw, members, note) if other is None else other.services,
        registrations=read_claims(members.get("registrations", "registration"), note),
        trust_models=_trust(members, note),
        x402_support=_x402(members, note),
        active=_flag(members.get("active"), "active", note),
        raw=whole,
        problems=problems.recorded,  # Last: by now all have been recorded.
    )


def problems_of(agent: OnchainAgent) -> tuple[FileProblem, ...]:
    """Return the problems of an agent's file, or that it has none, and those its id shows."""
    file = agent.registration
    if file is None:
        found = (agent.registration_problem or "no registration file").rstrip(".")
        return (FileProblem("tokenURI", found, "a registration file that anybody can read"),)
    claims = file.registrations
    if agent.agent_id == "0" or not any(c.agent_id == "0" for c in claims):
        return file.problems
    where = f"registrations[{next(n for n, c in enumerate(claims) if c.agent_id == '0')}].agentId"
    return (*file.problems, FileProblem(where, "0", f"{agent.agent_id}, this agent's id"))


def _object(value: JsonValue, note: Note) -> JsonObject:
    """Return the object that is the document, or the only item of a list, or within a text."""
    if isinstance(value, str) and (inner := load_inner(value, note)) is not None:
        note("file", "JSON in a text", "the JSON itself")
        value = inner
    if is_array(value) and len(value) == 1:
        note("file", "a list of one", "the object itself")
        value = value[0]
    if not is_object(value):
        raise NotRegistration("The document at the token URI is not a JSON object.")
    return value


def _unwrapped(raw: JsonObject, note: Note) -> JsonObject:
    """Return the inner object if an API's response was stored as the file."""
    if _KNOWN & raw.keys():
        return raw
    inner = {key: raw[key] for key in _WRAPPERS if key in raw}
    files = [(key, one) for key, one in inner.items() if is_object(one) and _KNOWN & one.keys()]
    if len(files) != 1:
        return raw
    key, found = files[0]
    note("file", f"the file within the member {quoted(key)}", "the file itself")
    return found


def _name(other: OtherDocument | None, members: Members, note: Note) -> str:
    if other is not None:
        return text_of(other.name)
    return _words("name", members.get("name", "agentName", "title"), members, note)


def _description(other: OtherDocument | None, members: Members, note: Note) -> str:
    if other is not None:
        return text_of(other.description)
    return _words("description", members.get("description", "summary"), members, note)


def _words(name: str, value: JsonValue, members: Members, note: Note) -> str:
    """Return a required text.

    A number is kept as written, and of several languages English wins.
    """
    if isinstance(value, str) and (text := text_of(value)):
        return text
    note(name, members.lacking(name) if value is None else described(value), "a text")
    if is_object(value):
        return text_of(value.get("en")) or next(
            (text_of(one) for _, one in sorted(value.items()) if text_of(one)), ""
        )
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value)[:_NUMBER_CHARS_MAX] if is_number else ""


def _image(members: Members, note: Note, *, is_required: bool) -> str:
    value = members.get(*_IMAGES)
    if isinstance(value, str) and value.strip():
        return url_of(value)
    if value is not None or is_required:
        note("image", members.lacking("image") if value is None else described(value), "a URL")
    if is_array(value):
        value = value[0]
    if is_object(value):
        value = Members(value, "image", note).get("url", "uri", "src")
    return url_of(value)


def _services(raw: JsonObject, members: Members, note: Note) -> tuple[Service, ...]:
    listed = members.get(*_LISTS)
    if listed is not None:
        return read_services(listed, note)
    if raw.get("services") != []:
        note("services", members.lacking("services"), _SERVICES)
    return ()


def _trust(members: Members, note: Note) -> tuple[str, ...]:
    value = members.get("supportedTrust", "supportedTrusts", "trustModels")
    if value is None:
        return ()
    if not is_array(value):
        note("supportedTrust", described(value), "a list of texts")
    if isinstance(value, str):
        value = value.split(",")
    if is_object(value):
        value = sorted(key for key, flag in value.items() if flag is True)
    if not is_array(value):
        return ()
    for number, item in enumerate(value):
        if not isinstance(item, str):
            note(f"supportedTrust[{number}]", described(item), "a text")
    return tuple(text for item in value[:CLAIMS_MAX] if (text := text_of(item)))


def _x402(members: Members, note: Note) -> bool | None:
    if members.key("x402Support") is not None:
        return _flag(members.get("x402Support"), "x402Support", note)
    nested = members.get("x402")
    if nested is None:
        return None
    note("x402Support", 'the member "x402"', 'the member "x402Support"')
    return _flag(nested.get("enabled"), "x402.enabled", note) if is_object(nested) else None


def _flag(value: JsonValue, where: str, note: Note) -> bool | None:
    """Return a flag; `"true"`, `"false"`, 1 and 0 are understood, other words are not."""
    if value is None or isinstance(value, bool):
        return value
    note(where, described(value), "true or false")
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower())
    return _FLAGS.get(str(value)) if isinstance(value, int) else None
