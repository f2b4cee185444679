"""Compares a feedback file with its event. Pure.

Source: EIP-8004, "Off-Chain Feedback File Structure".
"""

from dataclasses import dataclass
from typing import Final, Literal

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer
from assay.chains.model import Network
from assay.common.json import JsonObject, JsonValue, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.registries.registration_json import NotRegistration, load
from assay.reputation.events import RawLog

FILE_BYTES_MAX: Final = 64 * 1024

FileState = Literal["good", "paid", "bad", "other", "unread"]
"""The result of a file.

`good`: it is the voter's and agrees with its event. `paid`: and it proves a payment. `bad`: the
voter committed to it by hash, and it contradicts the voter's own event: the vote does not count.
`other`: not the file that was committed to, or undecidable: the vote counts without it. `unread`:
it could not be fetched, twice.
"""


@dataclass(frozen=True, slots=True)
class Event:
    """The part of `NewFeedback` that a file can be compared with."""

    agent_id: str
    client: str
    number: int
    value: int
    decimals: int
    tag1: str
    tag2: str
    uri: str
    digest: bytes


def event_of(log: RawLog) -> Event | None:
    """Return the event; None for data that the registry does not emit."""
    reader = AbiReader(log.data)
    try:
        texts = [
            reader.content(reader.number(at * WORD)).decode("utf-8", "replace") for at in (3, 4, 6)
        ]
        return Event(
            agent_id=str(int.from_bytes(log.topics[1])),
            client="0x" + log.topics[2][12:].hex(),
            number=reader.number(0, 64),
            value=reader.signed(WORD, 128),
            decimals=reader.number(2 * WORD, 8),
            tag1=texts[0],
            tag2=texts[1],
            uri=texts[2],
            digest=log.data[7 * WORD : 8 * WORD],
        )
    except (BadAnswer, IndexError):
        return None


def file_of(body: bytes) -> JsonObject | None:
    """Return the file's JSON object, read leniently and within bounds; None for anything else."""
    if len(body) > FILE_BYTES_MAX:
        return None
    try:
        found = load(body, _unnoted)
    except NotRegistration:
        return None
    return found if is_object(found) else None


def matches(file: JsonObject, event: Event, network: Network) -> bool | None:
    """Return whether a file agrees with its event; None if it lacks a required field."""
    registry = f"{network.caip2}:{network.identity_registry}".lower()
    must: tuple[tuple[JsonValue, bool], ...] = (
        (registry_of := file.get("agentRegistry"), str(registry_of).lower() == registry),
        (agent := file.get("agentId"), _is_number(agent, int(event.agent_id))),
        (client := file.get("clientAddress"), _address(client) == event.client),
        (value := file.get("value"), _is_number(value, event.value)),
        (decimals := file.get("valueDecimals"), _is_number(decimals, event.decimals)),
    )
    may = ((file.get("tag1"), event.tag1), (file.get("tag2"), event.tag2))
    if not all(said is None or fits for said, fits in must):
        return False
    if not all(said is None or said == was for said, was in may):
        return False
    return None if any(said is None for said, _ in must) else True


@dataclass(frozen=True, slots=True)
class PaymentProof:
    """`proofOfPayment`, as far as it can be looked up."""

    payer: str
    payee: str
    chain_id: int
    tx: str


def proof_of(file: JsonObject) -> PaymentProof | None:
    """Return the proof a file contains; None if there is none that can be looked up."""
    row = file.get("proofOfPayment")
    if not is_object(row):
        return None
    chain, tx = str(row.get("chainId", "")).removeprefix("eip155:"), str(row.get("txHash", ""))
    try:
        hex_number(tx, 256)
    except NotANumber:
        return None
    if len(tx) != 2 + 2 * WORD or not (chain.isascii() and chain.isdigit() and len(chain) < 20):  # noqa: PLR2004
        return None
    payer, payee = _address(row.get("fromAddress")), _address(row.get("toAddress"))
    return PaymentProof(payer, payee, int(chain), tx.lower())


def _unnoted(*problem: str) -> None:
    """Ignore the problem: the file is the voter's, and the agent is not to blame for it."""
    del problem


def _address(value: JsonValue) -> str:
    """Return an address of `0x...` or CAIP-10 in lower case; empty if it is invalid."""
    text = str(value).rpartition(":")[2].lower()
    try:
        hex_number(text, 160)
    except NotANumber:
        return ""
    return text if len(text) == 42 else ""  # noqa: PLR2004 - 0x and 20 bytes


def _is_number(value: JsonValue, is_it: int) -> bool:
    """Return whether a JSON number, or a text of one, equals that whole number."""
    if isinstance(value, str):
        digits = value.removeprefix("-")
        return digits.isascii() and digits.isdigit() and len(digits) < 80 and int(value) == is_it  # noqa: PLR2004
    return isinstance(value, int | float) and not isinstance(value, bool) and value == is_it
