"""Parses registration files leniently and reports every deviation. Pure.

Values with one possible meaning are read in all known spellings and shapes. Each deviation from
EIP-8004, "Agent Registration File", becomes a problem with where it is, what was found and what was
expected. The result does not depend on the order of members.
"""

from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.file_members import Members
from assay.registries.file_problems import FileProblem, Note, Problems, described, quoted
from assay.registries.model import OnchainAgent, RegistrationFile, Service
from assay.registries.registration_claims import CLAIMS_MAX, read_claims
from assay.registries.registration_json import BYTES_MAX, NotRegistration, load, load_inner
from assay.registries.registration_others import OtherDocument, read_other
from assay.registries.registration_services import read_services
from assay.registries.registration_text import text_of, url_of

__all__ = ["BYTES_MAX", "TYPE", "NotRegistration", "parse_registration", "problems_of"]

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
