"""Registration files, parsed leniently and never trusted. Pure.

The keys vary in the wild: `services` or `endpoints`, `x402Support`, `x402support` or
`x402.enabled`, `supportedTrust` or `supportedTrusts`, service names in any case; on Solana also
`type` and `value` for a service's `name` and `endpoint`. Source: EIP-8004,
"Agent Registration File", and the files its first users published.
"""

import json
import math
import unicodedata
from collections.abc import Sequence
from typing import NoReturn

from assay.chains.model import ClaimedRegistration, Registration, Service
from assay.kit.json import (
    JsonObject,
    JsonValue,
    has_values_beyond,
    is_array,
    is_nested_beyond,
    is_object,
)

TYPE = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"
"""The `type` of a registration file. Source: EIP-8004."""

BYTES_MAX = 256 * 1024
"""Largest file that is parsed: room for a picture within it, and little enough to keep many."""

VALUES_MAX = 10_000
SERVICES_MAX = 64
CLAIMS_MAX = 64
TEXT_CHARS_MAX = 2000
URL_CHARS_MAX = 2048
DEPTH_MAX = 32

_TWICE = "The registration file names a member twice; the last one counts."
_REQUIRED = ("name", "description", "image")


class NotRegistration(Exception):
    """The document is no registration file at all; the message is a sentence fit for a caller."""


def parse_registration(body: bytes) -> Registration:
    """The registration file in `body`; its `problems` say what is wrong with it.

    Raises `NotRegistration` for what is not a JSON object of bounded size and depth, and nothing
    else, whatever the bytes.
    """
    problems: list[str] = []
    raw = _load(body, problems)
    if raw.get("type") != TYPE:
        problems.append("The registration file does not name its type.")
    problems += [f"The registration file has no {key}." for key in _REQUIRED if not _has(raw, key)]
    return Registration(
        size_bytes=len(body),
        name=" ".join(_text(raw.get("name")).split()),
        image=_url(raw.get("image")),
        description=_text(raw.get("description")),
        services=_services(raw, problems),
        registrations=_claims(raw.get("registrations"), problems),
        trust_models=_texts(raw.get("supportedTrust") or raw.get("supportedTrusts")),
        x402_support=_x402(raw),
        active=_flag(raw.get("active")),
        problems=tuple(dict.fromkeys(problems)),
        raw=raw,
    )


def _load(body: bytes, problems: list[str]) -> JsonObject:
    if len(body) > BYTES_MAX:
        raise NotRegistration(f"The document at the token URI is larger than {BYTES_MAX} bytes.")
    if has_values_beyond(body, 4 * VALUES_MAX):  # commas of its texts count there
        raise NotRegistration("The document at the token URI holds too many values.")
    if is_nested_beyond(body, DEPTH_MAX):
        raise NotRegistration("The document at the token URI is nested too deeply.")

    def no_key_twice(pairs: Sequence[tuple[str, JsonValue]]) -> JsonObject:
        members = dict(pairs)
        if len(members) < len(pairs) and _TWICE not in problems:
            problems.append(_TWICE)
        return members

    try:
        raw: JsonValue = json.loads(
            body.decode("utf-8-sig"), parse_constant=_no_constant, object_pairs_hook=no_key_twice
        )
        _check(raw)
    except ValueError:
        raise NotRegistration("The document at the token URI is not JSON.") from None
    if not is_object(raw):
        raise NotRegistration("The document at the token URI is not a JSON object.")
    return raw


def _no_constant(name: str) -> NoReturn:
    """NaN and Infinity are no JSON (RFC 8259, section 6)."""
    raise ValueError(name)


def _check(value: JsonValue) -> None:
    """Refuses too many values, and those that have no JSON form.

    Raises `NotRegistration` for the first, `ValueError` for lone surrogates and for numbers that
    are larger than a float.
    """
    waiting: list[JsonValue] = [value]
    seen = 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if seen > VALUES_MAX:
            raise NotRegistration("The document at the token URI holds too many values.")
        if is_object(one):
            waiting += [*one.keys(), *one.values()]
        elif is_array(one):
            waiting += one
        elif isinstance(one, str):
            one.encode("utf-8")
        elif isinstance(one, float) and not math.isfinite(one):
            raise ValueError("a number larger than a float")


def _has(raw: JsonObject, key: str) -> bool:
    value = raw.get(key)
    return isinstance(value, str) and bool(value.strip())


def _services(raw: JsonObject, problems: list[str]) -> tuple[Service, ...]:
    listed = raw.get("services")
    listed = raw.get("endpoints") if listed is None else listed
    if listed is None:
        problems.append("The registration file declares no services.")
        return ()
    if is_object(listed):
        listed = [{"name": name, "endpoint": endpoint} for name, endpoint in listed.items()]
    if not is_array(listed):
        problems.append("The services of the registration file are not a list.")
        return ()
    if len(listed) > SERVICES_MAX:
        problems.append(f"Only the first {SERVICES_MAX} services of the file are looked at.")
    found = [_service(item) for item in listed[:SERVICES_MAX]]
    if None in found:
        problems.append("A service of the registration file lacks its name or endpoint.")
    return tuple(service for service in found if service is not None)


def _service(item: JsonValue) -> Service | None:
    if not is_object(item):
        return None
    name = _text(item.get("name")) or _text(item.get("type"))
    endpoint = _url(item.get("endpoint")) or _url(item.get("value"))
    version = _text(item.get("version")) or None
    return Service(name, endpoint, version) if name and endpoint else None


def _claims(listed: JsonValue, problems: list[str]) -> tuple[ClaimedRegistration, ...]:
    if not is_array(listed):
        if listed is not None:
            problems.append("The registrations of the file are not a list.")
        return ()
    return tuple(
        ClaimedRegistration(agent_id, _text(item.get("agentRegistry")))
        for item in listed[:CLAIMS_MAX]
        if is_object(item) and (agent_id := _agent_id(item.get("agentId")))
    )


def _agent_id(value: JsonValue) -> str:
    """Token ids are written as numbers and as text; a flag is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(value)


def _x402(raw: JsonObject) -> bool | None:
    for key in ("x402Support", "x402support"):
        if isinstance(flag := raw.get(key), bool):
            return flag
    nested = raw.get("x402")
    return _flag(nested.get("enabled")) if is_object(nested) else None


def _flag(value: JsonValue) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(listed: JsonValue) -> tuple[str, ...]:
    if not is_array(listed):
        return ()
    return tuple(text for item in listed[:CLAIMS_MAX] if (text := _text(item)))


def _text(value: JsonValue) -> str:
    """Without control, format and bidirectional characters (Unicode categories C*), cut to size."""
    if not isinstance(value, str):
        return ""
    shown = (c for c in value[:TEXT_CHARS_MAX] if c in "\n\t" or _shows(c))
    return "".join(shown).strip()


def _url(value: JsonValue) -> str:
    """A URL as it stands; one that is too long, or has anything but visible characters, is none."""
    if not isinstance(value, str) or len(value) > URL_CHARS_MAX:
        return ""
    stripped = value.strip()
    return stripped if all(_shows(c) and not c.isspace() for c in stripped) else ""


def _shows(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")
