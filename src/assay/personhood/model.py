"""Humans behind agents: what registries hold of them, and proofs of personhood."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.common.errors import Conflict, InvalidRequest, Unavailable


class ProofInvalid(InvalidRequest):
    """A proof of personhood that does not hold."""

    code = "proof_invalid"


class HumanTaken(Conflict):
    """One human backs at most one agent, and one agent has at most one human behind it."""

    code = "human_taken"


class PersonhoodUnavailable(Unavailable):
    """Proofs of personhood cannot be checked here now."""

    code = "personhood_unavailable"


@dataclass(frozen=True, slots=True)
class HumanRecord:
    """What a registry of agents with humans behind them holds of an address.

    `agents` is how many agents the same human has there, None where it does not say.
    """

    registered: bool
    holds: bool = False
    """The proof is fresh, and by the provider the registry trusts."""
    agents: int | None = None


@dataclass(frozen=True, slots=True)
class PersonhoodProof:
    """A proof as it was sent, its numbers in range. `level` is what the caller says it is of."""

    merkle_root: int
    nullifier_hash: int
    proof: tuple[int, ...]
    signal: str
    level: str | None


@dataclass(frozen=True, slots=True)
class Personhood:
    """A human behind a subject; `nullifier` is that human, under `scope`, without a name."""

    subject_key: str
    agent_id: str
    level: str
    scope: str
    nullifier: str
    verified_at: datetime


class HumanRegistry(Protocol):
    """A registry of agents with a human behind each."""

    async def find(self, address: str) -> HumanRecord:
        """What it holds of a lower-case address. Raises `common.errors.Unavailable`."""
        ...


class PersonhoodVerifier(Protocol):
    """Checks proofs of personhood for one configuration."""

    scope: str
    """Names the configuration: a human has one nullifier in it."""

    async def verify(self, proof: PersonhoodProof) -> str:
        """The level of a proof that holds. Raises `ProofInvalid` and `PersonhoodUnavailable`."""
        ...


class PersonhoodStore(Protocol):
    """Which subjects have a human behind them."""

    async def add(self, personhood: Personhood) -> Personhood:
        """Store it, or return what is stored already for the same human and subject.

        Raises `HumanTaken` when the human backs another subject, or another human this one.
        """
        ...

    async def find(self, subject_key: str) -> Personhood | None:
        """The human behind a subject."""
        ...
