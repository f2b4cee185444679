"""Verifies that a human backs an agent (interface.md#personhood-verification, #personhood)."""

import json
import re
from collections.abc import Sequence
from typing import Protocol

from assay.chains.model import Network
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, Problem
from assay.common.json import is_array
from assay.personhood.model import (
    Personhood,
    PersonhoodProof,
    PersonhoodStore,
    PersonhoodUnavailable,
    PersonhoodVerifier,
    ProofInvalid,
)
from assay.personhood.verifier import FIELD, PROOF_WORDS
from assay.registries.model import Subject, subject_key
from assay.registries.subjects import Subjects

LEVELS = frozenset({"orb", "secure_document", "document", "device", "face", "selfie"})
"""Source: personhood-proofs.md#world-id."""

NOT_CONFIGURED_S = 3600
"""Retry delay if an operator has not configured it: long, since that does not change soon."""

_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,64}|[0-9]{1,78}")
_PROOF = re.compile(r"(?:0x)?([0-9a-fA-F]{512})")


class DecisionCache(Protocol):
    """Caches decisions that a proven human changes."""

    def personhood_changed(self, subject_key: str) -> None:
        """Discard cached decisions about the subject."""
        ...


class Personhoods:
    """Verifies and stores proofs of personhood."""

    def __init__(
        self,
        subjects: Subjects,
        store: PersonhoodStore,
        verifier: PersonhoodVerifier | None,
        notified: Sequence[DecisionCache],
        clock: Clock,
    ) -> None:
        self._subjects = subjects
        self._store = store
        self._verifier = verifier
        self._notified = notified
        self._clock = clock

    async def verify(self, network: Network, agent_id: str, proof: PersonhoodProof) -> Personhood:
        """Verify a proof, store the human behind the agent and return it; repeatable.

        Raises `AgentNotFound` and `ChainUnavailable`, `ProofInvalid` for a proof that is invalid or
        was not made for this agent, `HumanTaken`, and `PersonhoodUnavailable`.
        """
        subject = await self._subjects.find(network, agent_id)
        if self._verifier is None:
            raise PersonhoodUnavailable(
                "Proofs of personhood are not configured here.", retry_after_s=NOT_CONFIGURED_S
            )
        if proof.signal.lower() not in _names_of(subject):
            raise ProofInvalid(
                "The signal of the proof must name the agent: its id, its chain id and id "
                "(`8453:22`), or its wallet."
            )
        level = await self._verifier.verify(proof)
        stored = await self._store.add(
            Personhood(
                subject_key=subject.key,
                agent_id=subject.agent_id,
                level=level,
                scope=self._verifier.scope,
                nullifier=f"0x{proof.nullifier_hash:064x}",
                verified_at=self._clock.now(),
            )
        )
        for one in self._notified:
            one.personhood_changed(subject.key)
        return stored

    async def find(self, network: Network, agent_id: str) -> tuple[str, Personhood | None]:
        """Return the id the agent is stored under, and the human who backs it.

        Raises `InvalidRequest`, and `AgentNotFound` if the agent has no human and does not exist.
        """
        agent_id = await self._subjects.identify(network, agent_id)
        found = await self._store.find(subject_key(network, agent_id))
        if found is None:
            await self._subjects.find(network, agent_id)
        return agent_id, found


def parse_proof(
    *, merkle_root: str, nullifier_hash: str, proof: str, signal: str, level: str | None
) -> PersonhoodProof:
    """Parse a proof: numbers in hex or decimal, the proof as 256 bytes or eight numbers.

    Raises `InvalidRequest` naming every invalid field.
    """
    problems: list[Problem] = []
    root = _field_number("merkle_root", merkle_root, problems)
    nullifier = _field_number("nullifier_hash", nullifier_hash, problems)
    words = _proof_words(proof)
    if words is None:
        problems.append(Problem(("body", "proof"), "must be 256 bytes in hex, or eight numbers"))
    if level is not None and level not in LEVELS:
        known = ", ".join(sorted(LEVELS))
        problems.append(Problem(("body", "verification_level"), f"must be one of: {known}"))
    if problems or words is None:
        raise InvalidRequest("The proof cannot be read.", details=problems)
    return PersonhoodProof(root, nullifier, words, signal, level)


def _field_number(name: str, text: str, problems: list[Problem]) -> int:
    number = _number(text)
    if number is None or number >= FIELD:
        problems.append(Problem(("body", name), "must be a number of the proof's field"))
        return 0
    return number


def _proof_words(text: str) -> tuple[int, ...] | None:
    """Return the eight numbers, below 2^256; a JSON list may be nested like the provider's own."""
    found = _PROOF.fullmatch(text)
    if found is not None:
        raw = bytes.fromhex(found[1])
        return tuple(int.from_bytes(raw[at : at + 32]) for at in range(0, len(raw), 32))
    try:
        listed: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    numbers = [_number(str(one)) for one in _flat(listed)]
    words = tuple(n for n in numbers if n is not None and n >> 256 == 0)
    return words if len(words) == len(numbers) == PROOF_WORDS else None


def _flat(listed: object, depth: int = 3) -> list[object]:
    if not is_array(listed) or depth == 0:
        return [listed]
    return [one for part in listed for one in _flat(part, depth - 1)]


def _number(text: str) -> int | None:
    return int(text, 0) if _NUMBER.fullmatch(text) and not _is_octal(text) else None


def _is_octal(text: str) -> bool:
    """Return whether it is decimal with leading zeros, which Python rejects and nobody intends."""
    return text[0] == "0" and len(text) > 1 and not text.startswith("0x")


def _names_of(subject: Subject) -> frozenset[str]:
    chain_and_id = f"{subject.network.chain_id}:{subject.agent_id}"
    return frozenset({subject.agent_id, chain_and_id, subject.key, subject.wallet})
