"""HTTP Message Signatures with Ed25519, as Web Bot Auth uses them. Pure.

Reads `Signature-Input`, `Signature` and `Signature-Agent`, and builds the bytes that were signed.
The parser accepts only the structured fields that signers send (RFC 9651: integers, strings,
tokens, bytes, booleans), each once, within bounds. Everything else is refused, never guessed.

Source: RFC 9421, sections 2, 2.5 and 3.2; draft-meunier-web-bot-auth-architecture, section 4.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeGuard

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from assay.common.http_heads import HeaderPairs
from assay.identity.model import WebBotAuthRefused

TAG: Final = "web-bot-auth"
"""Source: draft-meunier-web-bot-auth-architecture, section 4.2."""

LIFETIME_MAX_S: Final = 300
"""Longest time from `created` to `expires`."""

SKEW_S: Final = 60
"""How far a signer's clock may be ahead of this one."""

SIGNATURE_BYTES: Final = 64
KEY_ID_CHARS: Final = 43
"""A SHA-256 thumbprint in base64url without padding. Source: RFC 7638, section 3; RFC 8037."""

_FIELD_CHARS_MAX = 4096
_MEMBERS_MAX = 8
_ITEMS_MAX = 20
_NONCE_CHARS_MAX = 256
_PRINTABLE = re.compile(rb"[\t\x20-\x7e]*")
"""No line end: it would begin another line of the signature base."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a structured field; a string is a `str`."""

    text: str


BareItem: TypeAlias = "int | str | bool | bytes | Token"
Parameters: TypeAlias = tuple[tuple[str, BareItem], ...]
Item: TypeAlias = tuple[BareItem, Parameters]


@dataclass(frozen=True, slots=True)
class InnerList:
    """An inner list and its parameters."""

    items: tuple[Item, ...]
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The parts of a request that a signature may cover, as the service knows them."""

    headers: HeaderPairs
    """Every header field as it was sent; names are lower case."""
    authorities: tuple[str, ...]
    """The values of `@authority` that are accepted: never what the caller says."""
    derived: Mapping[str, str]
    """Other derived components that are known, such as `@method`."""
    required: tuple[str, ...] = ()
    """Components that a signature must cover here, beside those that it must cover anywhere."""


@dataclass(frozen=True, slots=True)
class RequestSignature:
    """A Web Bot Auth signature that is in time and covers what it must. It is not verified yet."""

    agent: str
    """The URL of `Signature-Agent`, as sent."""
    key_id: str
    nonce: str
    expires: int
    """Seconds since 1970."""
    bases: tuple[bytes, ...]
    """The bytes that were signed, for each accepted authority."""
    signature: bytes

    def is_signed_by(self, key: bytes) -> bool:
        """Return whether the Ed25519 key of 32 bytes signed it for an accepted authority."""
        try:
            verifier = Ed25519PublicKey.from_public_bytes(key)
        except ValueError:
            return False
        return any(_is_signed(verifier, self.signature, base) for base in self.bases)


def read_signature(request: SignedRequest, now_s: float) -> RequestSignature:
    """Return the one signature with the tag `web-bot-auth`. Raises `WebBotAuthRefused`."""
    label, signed = _signed_list(request.headers)
    parameters = dict(signed.parameters)
    created, expires = parameters.get("created"), parameters.get("expires")
    if type(created) is not int or type(expires) is not int:
        raise _refused("malformed", "Sign with the parameters created and expires.")
    _require_time(created, expires, now_s)
    if parameters.get("alg", "ed25519") != "ed25519":
        raise _refused("algorithm", "Sign with Ed25519: no other algorithm is accepted.")
    key_id, nonce = parameters.get("keyid"), parameters.get("nonce")
    if not isinstance(key_id, str) or len(key_id) != KEY_ID_CHARS:
        raise _refused("malformed", "Sign with keyid: the key's JWK thumbprint (RFC 7638).")
    if not isinstance(nonce, str) or not 0 < len(nonce) <= _NONCE_CHARS_MAX:
        raise _refused("nonce", "Sign with a nonce of 1 to 256 characters, new for each request.")
    signature = _dictionary(_field(request.headers, "signature")).get(label)
    if not _is_item(signature) or type(signature[0]) is not bytes:
        raise _refused("malformed", "Signature has no bytes for the label of Signature-Input.")
    if len(signature[0]) != SIGNATURE_BYTES:
        raise _refused("malformed", "An Ed25519 signature has 64 bytes.")
    agent = _agent(_field(request.headers, "signature-agent"), label, signed)
    _require_components(signed, request)
    bases = tuple(_base(signed, request, authority) for authority in request.authorities)
    return RequestSignature(agent, key_id, nonce, expires, bases, signature[0])


def _require_time(created: int, expires: int, now_s: float) -> None:
    if not 0 < expires - created <= LIFETIME_MAX_S:
        message = f"A signature is valid for at most {LIFETIME_MAX_S} seconds."
        raise _refused("lifetime", message)
    if created > now_s + SKEW_S:
        raise _refused("not_yet_valid", "created is in the future: set the signer's clock.")
    if expires <= now_s:
        raise _refused("expired", "The signature has expired: sign each request when it is sent.")


def _signed_list(headers: HeaderPairs) -> tuple[str, InnerList]:
    """Return the label and the covered components of the one signature with our tag."""
    found = [
        (label, value)
        for label, value in _dictionary(_field(headers, "signature-input")).items()
        if isinstance(value, InnerList) and ("tag", TAG) in value.parameters
    ]
    if len(found) != 1:
        raise _refused("malformed", f'Send exactly one signature with the tag "{TAG}".')
    return found[0]


def _agent(field: str, label: str, signed: InnerList) -> str:
    """Return the URL of `Signature-Agent`: a string, or the member of the signature's label."""
    named = [parameters for name, parameters in signed.items if name == "signature-agent"]
    whole, member = () in named, (("key", label),) in named
    if field.startswith('"'):
        value, end = _item(field, 0)
        if whole and end == len(field) and isinstance(value[0], str):
            return value[0]
    else:
        chosen = _dictionary(field).get(label)
        if (whole or member) and _is_item(chosen) and isinstance(chosen[0], str):
            return chosen[0]
    raise _refused("malformed", "Send Signature-Agent as a quoted URL, and sign it.")


def _require_components(signed: InnerList, request: SignedRequest) -> None:
    """Require what limits a signature to one site and one agent.

    A platform may sign what its tenants send, so the signature must say which agent it is.
    """
    if len(set(signed.items)) != len(signed.items):
        raise _refused("malformed", "No component may be signed twice.")
    sent = [name for name, _ in request.headers]
    if sent.count(b"x-agent-id") > 1 or sent.count(b"x-chain") > 1:
        raise _refused("malformed", "Send x-agent-id and x-chain once.")
    required = ["@authority", *request.required, "x-agent-id"]
    if b"x-chain" in sent:
        required.append("x-chain")
    if not set(required) <= {name for name, _ in signed.items}:
        raise _refused("components", f"Sign {', '.join(required)} and signature-agent.")


def _base(signed: InnerList, request: SignedRequest, authority: str) -> bytes:
    """Return the signature base. Source: RFC 9421, section 2.5."""
    lines = [f"{_shown(item)}: {_component(item, request, authority)}" for item in signed.items]
    lines.append(f'"@signature-params": {_shown_list(signed)}')
    return "\n".join(lines).encode("latin-1")


def _component(item: Item, request: SignedRequest, authority: str) -> str:
    name, parameters = item
    if not isinstance(name, str) or name != name.lower():
        raise _refused("malformed", "A component's name is a quoted string in lower case.")
    if parameters:
        if name != "signature-agent" or [key for key, _ in parameters] != ["key"]:
            raise _refused("components", "Sign components without parameters.")
        member = _dictionary(_field(request.headers, name)).get(str(parameters[0][1]))
        if not _is_item(member):
            raise _refused("malformed", "Signature-Agent has no such member.")
        return _shown(member)
    if name == "@authority":
        return authority
    if not name.startswith("@"):
        return _field(request.headers, name)
    if (known := request.derived.get(name)) is None:
        message = f"Here a signature may cover {', '.join(['@authority', *request.derived])} only."
        raise _refused("components", f"{message} Header fields may be signed too.")
    return known


def _field(headers: HeaderPairs, name: str) -> str:
    """Return a field's combined value. Source: RFC 9421, section 2.1."""
    values = [value.strip(b" \t") for key, value in headers if key == name.encode("latin-1")]
    joined = b", ".join(values)
    if not values or len(joined) > _FIELD_CHARS_MAX or not _PRINTABLE.fullmatch(joined):
        raise _refused("malformed", f"The header field {name[:60]} is missing, too long or odd.")
    return joined.decode("ascii")


def _is_signed(verifier: Ed25519PublicKey, signature: bytes, base: bytes) -> bool:
    try:
        verifier.verify(signature, base)
    except InvalidSignature:
        return False
    return True


def _refused(reason: str, message: str) -> WebBotAuthRefused:
    return WebBotAuthRefused(message, reason=f"web_bot_auth_{reason}")


# -- structured fields ----------------------------------------------------------------------------

_KEY = re.compile(r"[a-z*][a-z0-9_\-.*]{0,63}")
_INTEGER = re.compile(r"-?[0-9]{1,15}(?![0-9.])")
_STRING = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_TOKEN = re.compile(r"[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*")
_BYTES = re.compile(r":([A-Za-z0-9+/]*={0,2}):")
_BOOLEAN = re.compile(r"\?([01])")
_SPACES = re.compile(r" *")
_COMMA = re.compile(r"[ \t]*,[ \t]*")


def _is_item(value: "Item | InnerList | None") -> TypeGuard[Item]:
    return isinstance(value, tuple)


def _dictionary(text: str) -> dict[str, "Item | InnerList"]:
    """Return the members of a dictionary, each once. Source: RFC 9651, section 4.2.2."""
    members: dict[str, Item | InnerList] = {}
    at = 0
    while True:
        key, at = _key(text, at)
        if key in members or len(members) >= _MEMBERS_MAX:
            raise _unreadable()
        if text[at : at + 1] != "=":
            parameters, at = _parameters(text, at)
            members[key] = (True, parameters)
        elif text[at + 1 : at + 2] == "(":
            members[key], at = _inner_list(text, at + 1)
        else:
            members[key], at = _item(text, at + 1)
        if at == len(text):
            return members
        comma = _COMMA.match(text, at)
        if comma is None:
            raise _unreadable()
        at = comma.end()


def _inner_list(text: str, at: int) -> tuple[InnerList, int]:
    items: list[Item] = []
    at += 1
    while True:
        spaces = _SPACES.match(text, at)
        begins = at if spaces is None else spaces.end()
        if text[begins : begins + 1] == ")":
            parameters, at = _parameters(text, begins + 1)
            return InnerList(tuple(items), parameters), at
        if (items and begins == at) or len(items) >= _ITEMS_MAX:
            raise _unreadable()
        item, at = _item(text, begins)
        items.append(item)


def _item(text: str, at: int) -> tuple[Item, int]:
    value, at = _bare_item(text, at)
    parameters, at = _parameters(text, at)
    return (value, parameters), at


def _parameters(text: str, at: int) -> tuple[Parameters, int]:
    found: dict[str, BareItem] = {}
    while text[at : at + 1] == ";":
        spaces = _SPACES.match(text, at + 1)
        key, at = _key(text, at + 1 if spaces is None else spaces.end())
        if key in found or len(found) >= _ITEMS_MAX:
            raise _unreadable()
        found[key] = True
        if text[at : at + 1] == "=":
            found[key], at = _bare_item(text, at + 1)
    return tuple(found.items()), at


def _key(text: str, at: int) -> tuple[str, int]:
    found = _KEY.match(text, at)
    if found is None:
        raise _unreadable()
    return found[0], found.end()


def _bare_item(text: str, at: int) -> tuple[BareItem, int]:
    for pattern in (_STRING, _INTEGER, _BYTES, _BOOLEAN, _TOKEN):
        found = pattern.match(text, at)
        if found is not None:
            return _value(pattern, found), found.end()
    raise _unreadable()


def _value(pattern: re.Pattern[str], found: re.Match[str]) -> BareItem:
    if pattern is _STRING:
        return re.sub(r"\\(.)", r"\1", found[1])
    if pattern is _INTEGER:
        return int(found[0])
    if pattern is _BOOLEAN:
        return found[1] == "1"
    if pattern is _TOKEN:
        return Token(found[0])
    try:
        return base64.b64decode(found[1], validate=True)
    except binascii.Error:
        raise _unreadable() from None


def _shown_list(value: InnerList) -> str:
    inside = " ".join(_shown(item) for item in value.items)
    return f"({inside}){_shown_parameters(value.parameters)}"


def _shown(item: Item) -> str:
    """Return an item in its one spelling. Source: RFC 9651, section 4.1."""
    return _shown_bare(item[0]) + _shown_parameters(item[1])


def _shown_parameters(parameters: Sequence[tuple[str, BareItem]]) -> str:
    return "".join(
        f";{key}" if value is True else f";{key}={_shown_bare(value)}" for key, value in parameters
    )


def _shown_bare(value: BareItem) -> str:
    if isinstance(value, bool):
        return "?1" if value else "?0"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return f":{base64.b64encode(value).decode()}:"
    if isinstance(value, Token):
        return value.text
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unreadable() -> WebBotAuthRefused:
    return _refused("malformed", "A header field of the signature is not a structured field.")
