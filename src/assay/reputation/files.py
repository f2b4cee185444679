"""Reads feedback files in the background, and compares them with event and chain.

Compares a feedback file with its event. Pure.

Source: EIP-8004, "Off-Chain Feedback File Structure".

Looks up a payment, proven by a voter, on its chain.

A file can prove a payment (`proofOfPayment`) that its voter made to the agent's wallet; the payment
then counts as if it were indexed. A file can never add a vote, nor act for another address: hashes
of others' payments are public. Source: EIP-8004, "Off-Chain Feedback File Structure"; ADR 0041.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer, address_word, word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Returned, Rpc, RpcRefused
from assay.common.errors import ServiceError
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.registries import erc8004
from assay.registries.ports import DocumentOverBudget, Documents, DocumentUnavailable
from assay.registries.registration_json import NotRegistration, load
from assay.reputation.events import (
    AUTHORIZATION_USED,
    DAY_S,
    NEW_FEEDBACK,
    TAIL,
    TRANSFER,
    RawLog,
    fetch_logs,
    head_of,
    raw_log,
    transferred,
)
from assay.reputation.model import PaymentChain, ProvenPayment, TransferRow

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


def _event_of(log: RawLog) -> Event | None:
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


def _file_of(body: bytes) -> JsonObject | None:
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


def _proof_of(file: JsonObject) -> PaymentProof | None:
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


LOGS_MAX: Final = 500
"""Events examined in one transaction."""


class PaymentProofs:
    """Looks payments up on chain."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, PaymentChain], tail: int = TAIL) -> None:
        self._rpc = rpc
        self._chains = chains
        self._tail = tail

    async def paid(
        self, proof: PaymentProof, event: Event, network: Network, block: int
    ) -> ProvenPayment | None:
        """Return the payment if its voter made it before the feedback, to the agent's wallet.

        Raises `DocumentOverBudget` if the payment may still be reorganised.
        """
        chain = next(
            (
                one
                for one in self._chains.values()
                if one.network.chain_id == proof.chain_id and one.network.testnet == network.testnet
            ),
            None,
        )
        if chain is None or proof.payee != await self._wallet(network, event.agent_id):
            return None
        try:
            answer = await self._rpc.request(chain.network, "eth_getTransactionReceipt", [proof.tx])
        except RpcRefused:
            return None
        receipt: JsonObject = answer if is_object(answer) else {}
        listed = receipt.get("logs")
        if receipt.get("status") != "0x1" or not is_array(listed) or len(listed) > LOGS_MAX:
            return None
        logs = [raw_log(row) for row in listed]
        paid = self._moved(logs, listed, proof, chain)
        if paid is None:
            return None
        head, _, _ = await head_of(self._rpc, chain.network)
        if paid.block > head - self._tail:
            raise DocumentOverBudget("the payment may still be taken back")
        _, at_s, _ = await head_of(self._rpc, chain.network, hex(paid.block))
        _, said_s, _ = await head_of(self._rpc, network, hex(block))
        if at_s > said_s:
            return None
        is_charge = chain.charges_only or any(
            log.name == AUTHORIZATION_USED and "0x" + log.topics[1][12:].hex() == proof.payer
            for log in logs
            if len(log.topics) > 1
        )
        return ProvenPayment(
            chain.network.slug,
            TransferRow(
                *(paid.tx, paid.index, proof.payer, proof.payee),
                *(transferred(paid, chain), paid.block, at_s // DAY_S, is_charge),
            ),
        )

    @staticmethod
    def _moved(
        logs: Sequence[RawLog], rows: Sequence[JsonValue], proof: PaymentProof, chain: PaymentChain
    ) -> RawLog | None:
        """Return the transfer of a listed asset between the two; the largest of several."""
        assets = {asset.address.lower() for asset in chain.assets}
        ends = (address_word(proof.payer), address_word(proof.payee))
        found = [
            log
            for log, row in zip(logs, rows, strict=True)
            if is_object(row)
            and str(row.get("address")).lower() in assets
            and log.name == TRANSFER
            and log.topics[1:] == ends
            and log.tx == proof.tx
            and transferred(log, chain) > 0
        ]
        return max(found, key=lambda log: transferred(log, chain), default=None)

    async def _wallet(self, network: Network, agent_id: str) -> str | None:
        """Return the agent's current wallet. Raises `ChainUnavailable` and `BadAnswer`."""
        call = erc8004.agent_wallet(network.identity_registry, agent_id)
        (answer,) = await self._rpc.call(network, [call])
        return erc8004.read_address(answer.data) if isinstance(answer, Returned) else None


FILE_S: Final = 8.0
"""Time limit of one file, including redirects."""

PER_AGENT: Final = 20
PER_VOTER: Final = 5
PER_SITE: Final = 20
PER_DAY: Final = 5_000
"""Files a day: of one agent's feedback, of one voter, from one registrable domain (a redirect
counts as another), and in all."""


@dataclass(frozen=True, slots=True)
class FileDue:
    """A file to be read, of the feedback at this position."""

    network: str
    agent_id: str
    client: str
    number: int
    block: int
    is_again: bool = False
    """Whether an earlier attempt to fetch it failed."""


class FileQueue(Protocol):
    """The files to be read, and their results, shared by any number of processes."""

    async def next_file(self, day: int) -> FileDue | None:
        """Return the file that has waited longest; `day` counts from 1970."""
        ...

    async def put_off(self, due: FileDue, until_day: int, *, is_again: bool) -> None:
        """Postpone reading it; `is_again` counts a failed attempt."""
        ...

    async def finish(self, due: FileDue, state: FileState, paid: ProvenPayment | None) -> None:
        """Store its result. A payment already proven by another feedback is not stored again."""
        ...


Take = Callable[[Sequence[tuple[str, int]], int], Awaitable[bool]]
"""Takes a unit of each daily budget, or of none; returns whether every budget had one."""


class FeedbackFiles:
    """Reads one file at a time."""

    def __init__(  # noqa: PLR0913 - what a file is read with
        self,
        *,
        queue: FileQueue,
        documents: Documents,
        rpc: Rpc,
        registries: Mapping[str, Network],
        chains: Mapping[str, PaymentChain],
        keccak256: Callable[[bytes], bytes],
        take: Take,
        tail: int = TAIL,
    ) -> None:
        """Create it; `documents` counts each of its requests in the budget of the host's site."""
        self._queue = queue
        self._documents = documents
        self._rpc = rpc
        self._registries = registries
        self._proofs = PaymentProofs(rpc, chains, tail)
        self._keccak256 = keccak256
        self._take = take

    async def step(self, day: int) -> bool:
        """Read the file that has waited longest; return whether there was one."""
        due = await self._queue.next_file(day)
        if due is None:
            return False
        try:
            await self._read(due, day)
        except DocumentOverBudget:
            await self._queue.put_off(due, day + 1, is_again=due.is_again)
        except (DocumentUnavailable, ChainUnavailable, BadAnswer, TimeoutError):
            if due.is_again:
                await self._queue.finish(due, "unread", None)
            else:
                await self._queue.put_off(due, day + 1, is_again=True)
        except ServiceError:
            raise
        except Exception:  # noqa: BLE001 - a stranger's file that finds a fault of ours holds up none
            await self._queue.finish(due, "unread", None)
        return True

    async def _read(self, due: FileDue, day: int) -> None:
        network = self._registries.get(due.network)
        event = None if network is None else await self._event(network, due)
        if network is None or event is None:
            await self._queue.finish(due, "other", None)
            return
        about = f"{due.network}/{due.agent_id}"
        limits = [
            (f"file of {about}", PER_AGENT),
            (f"file by {due.client}", PER_VOTER),
            ("files", PER_DAY),
        ]
        if not await self._take(limits, day):
            raise DocumentOverBudget("this day's files were read")
        async with asyncio.timeout(FILE_S):
            document = await self._documents.fetch(event.uri)
        state, proof = self._judged(document.body, event, network)
        paid = None
        if state == "good" and proof is not None and proof.payer == event.client:
            paid = await self._proofs.paid(proof, event, network, due.block)
        await self._queue.finish(due, state if paid is None else "paid", paid)

    def _judged(
        self, body: bytes, event: Event, network: Network
    ) -> tuple[FileState, PaymentProof | None]:
        """Return the file's state, and the payment it names.

        Only a file that its voter committed to by hash can invalidate the vote: otherwise the
        server of a file could cancel the votes of others.
        """
        is_committed = any(event.digest) and self._keccak256(body) == event.digest
        is_addressed = not any(event.digest) and event.uri[:5].lower() in {"ipfs:", "data:"}
        file = _file_of(body)
        if file is None or not (is_committed or is_addressed):
            return "other", None
        found = matches(file, event, network)
        if found is False:
            return ("bad" if is_committed else "other"), None
        return ("other", None) if found is None else ("good", _proof_of(file))

    async def _event(self, network: Network, due: FileDue) -> Event | None:
        """Return the feedback's own event from the chain."""
        topics = [
            NEW_FEEDBACK,
            "0x" + word(int(due.agent_id)).hex(),
            "0x" + address_word(due.client).hex(),
        ]
        registry = network.reputation_registry
        logs = await fetch_logs(self._rpc, network, [registry], topics, due.block, due.block)
        events = (_event_of(log) for log in logs if log.name == NEW_FEEDBACK)
        return next((one for one in events if one and one.number == due.number), None)
