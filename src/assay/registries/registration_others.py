"""Reads other kinds of documents that token URIs point at instead of a registration file. Pure.

Agent cards (A2A 0.3 and 1.0), MCP server descriptions and client configurations, OpenAPI, x402
demands, OASF records, plugin manifests and DID documents each declare services in their own way.
"""

from collections.abc import Callable
from dataclasses import dataclass

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.file_problems import Note, described
from assay.registries.model import Service
from assay.registries.registration_services import read_services
from assay.registries.registration_text import url_of

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


def _x402(raw: JsonObject, source: str, note: Note) -> OtherDocument:
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
    (lambda raw: "x402Version" in raw and is_array(raw.get("accepts")), "an x402 demand", _x402),
    (lambda raw: is_array(raw.get("locators")), "a record of OASF", _oasf),
    (
        lambda raw: "schema_version" in raw and is_object(raw.get("api")),
        "a plugin manifest",
        _plugin,
    ),
    (lambda raw: "@context" in raw and is_array(raw.get("service")), "a DID document", _did),
)
