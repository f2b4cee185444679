"""Humans behind agents: records of registries, and proofs of personhood."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.common.errors import Conflict, InvalidRequest, Unavailable


class ProofInvalid(InvalidRequest):
    """A proof of personhood is invalid."""

    code = "proof_invalid"


class HumanTaken(Conflict):
    """A human may back only one agent, and an agent may have only one human."""

    code = "human_taken"


class PersonhoodUnavailable(Unavailable):
    """Proofs of personhood cannot be checked now."""

    code = "personhood_unavailable"


@dataclass(frozen=True, slots=True)
class HumanRecord:
    """The record that a registry of human-backed agents has of an address.

    `agents` is the number of agents of the same human there, None if unknown.
    """

    registered: bool
    holds: bool = False
    """Whether the proof is current, and by the provider the registry trusts."""
    agents: int | None = None


@dataclass(frozen=True, slots=True)
class PersonhoodProof:
    """A proof as sent, its numbers in range. `level` is the caller's claim."""

    merkle_root: int
    nullifier_hash: int
    proof: tuple[int, ...]
    signal: str
    level: str | None


@dataclass(frozen=True, slots=True)
class Personhood:
    """A human who backs a subject; `nullifier` identifies the human under `scope` anonymously."""

    subject_key: str
    agent_id: str
    level: str
    scope: str
    nullifier: str
    verified_at: datetime


class HumanRegistry(Protocol):
    """A registry of human-backed agents."""

    async def find(self, address: str) -> HumanRecord:
        """Return its record of a lower-case address. Raises `common.errors.Unavailable`."""
        ...


class PersonhoodVerifier(Protocol):
    """Checks proofs of personhood for one configuration."""

    scope: str
    """Names the configuration: a human has one nullifier in it."""

    async def verify(self, proof: PersonhoodProof) -> str:
        """Return the level of a valid proof. Raises `ProofInvalid` and `PersonhoodUnavailable`."""
        ...


class PersonhoodStore(Protocol):
    """Stores which subjects are backed by a human."""

    async def add(self, personhood: Personhood) -> Personhood:
        """Store it, or return what is already stored for the same human and subject.

        Raises `HumanTaken` if the human backs another subject, or the subject has another human.
        """
        ...

    async def find(self, subject_key: str) -> Personhood | None:
        """Return the human who backs a subject."""
        ...
