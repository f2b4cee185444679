"""Reads the `registrations` of a file: the agents it claims to belong to. Pure.

An agent registry is written in CAIP-10, `eip155:{chainId}:{address}`. Source: EIP-8004.
"""

import re
from collections.abc import Iterator

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.registries.file_members import Members
from assay.registries.file_problems import Note, described
from assay.registries.model import ClaimedRegistration
from assay.registries.registration_text import is_placeholder, text_of

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
        yield from _of_object(where, item, note)
    else:
        note(where, described(item), "an object with agentId and agentRegistry")


def _of_object(where: str, item: JsonObject, note: Note) -> Iterator[ClaimedRegistration]:
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
    return "" if is_placeholder(text) else text


def _number(text: str) -> int:
    return int(text, 16) if text[:2].lower() == "0x" else int(text)
