"""Reads feedback files in the background, and compares them with event and chain.

A file can prove a payment (`proofOfPayment`) that its voter made to the agent's wallet; the payment
then counts as if it were indexed. A file can never add a vote, nor act for another address: hashes
of others' payments are public. Source: EIP-8004, "Off-Chain Feedback File Structure"; ADR 0041.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from assay.chains.evm.abi import BadAnswer, address_word, word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.errors import ServiceError
from assay.registries.ports import DocumentOverBudget, Documents, DocumentUnavailable
from assay.reputation.events import NEW_FEEDBACK, fetch_logs
from assay.reputation.file_rules import (
    Event,
    FileState,
    PaymentProof,
    event_of,
    file_of,
    matches,
    proof_of,
)
from assay.reputation.indexer import TAIL
from assay.reputation.payment_proofs import PaymentProofs
from assay.reputation.rows import PaymentChain, ProvenPayment

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
        file = file_of(body)
        if file is None or not (is_committed or is_addressed):
            return "other", None
        found = matches(file, event, network)
        if found is False:
            return ("bad" if is_committed else "other"), None
        return ("other", None) if found is None else ("good", proof_of(file))

    async def _event(self, network: Network, due: FileDue) -> Event | None:
        """Return the feedback's own event from the chain."""
        topics = [
            NEW_FEEDBACK,
            "0x" + word(int(due.agent_id)).hex(),
            "0x" + address_word(due.client).hex(),
        ]
        registry = network.reputation_registry
        logs = await fetch_logs(self._rpc, network, [registry], topics, due.block, due.block)
        events = (event_of(log) for log in logs if log.name == NEW_FEEDBACK)
        return next((one for one in events if one and one.number == due.number), None)
