"""What wrappers need of the outside."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, Protocol

from assay.audit.service import AuditEntry
from assay.http1.model import Caller
from assay.wrappers.history import FieldChange, Revision
from assay.wrappers.model import WrapperConfig

QUOTES_MAX: Final = 100
"""Revisions of one wrapper, price and network that a payment is held against."""


ChangeResult = Literal["changed", "overlaps", "stale"]


class WrapperStore(Protocol):
    """Wrapper configs, and what they have been: each change is a revision, in one transaction."""

    async def add(
        self, config: WrapperConfig, route_key: str, note: AuditEntry | None = None
    ) -> bool:
        """Store; False when an active config of the operator has the same route key."""
        ...

    async def find(self, operator_id: str, config_id: str) -> WrapperConfig | None:
        """The operator's config of this id, active or not."""
        ...

    async def owner_for_admin(self, config_id: str) -> str | None:
        """The id of the operator whose config it is."""
        ...

    async def change(
        self, config: WrapperConfig, changes: Sequence[FieldChange], note: AuditEntry
    ) -> ChangeResult:
        """Replace a config by its next revision.

        `stale`: it is no longer what the revision before was; `overlaps`: another active config of
        the operator has the same route key. Nothing is changed then.
        """
        ...

    async def history(
        self, operator_id: str, config_id: str, at_most: int, offset: int
    ) -> tuple[Sequence[Revision], int]:
        """What the operator's config has been, newest first; and how many there are."""
        ...

    async def revision(self, operator_id: str, config_id: str, number: int) -> WrapperConfig | None:
        """The config as it was.

        Without a target while the account is suspended or deleted, and once the upstream's secret
        has been forgotten.
        """
        ...

    async def quoted(
        self, operator_id: str, config_id: str, network: str, price: int, since: datetime
    ) -> Sequence[Revision]:
        """Active revisions that asked for the price on the network and were in force after `since`.

        Newest first, at most `QUOTES_MAX`.
        """
        ...

    async def list(self, operator_id: str) -> Sequence[WrapperConfig]:
        """The operator's configs, newest first, inactive ones included."""
        ...

    async def count(self, operator_id: str, *, is_active: bool | None = None) -> int:
        """How many configs the operator has: all, or the active or inactive ones."""
        ...

    async def active(self, operator_id: str) -> Sequence[WrapperConfig]:
        """The operator's active configs; none while its account is suspended."""
        ...

    async def deactivate(
        self, operator_id: str, config_id: str, note: AuditEntry | None = None
    ) -> bool:
        """Whether the operator has such a config; it is inactive afterwards."""
        ...

    async def sealed(self, operator_id: str) -> Sequence[tuple[str, bytes]]:
        """The sealed secrets of the operator's configs and revisions, each once, with its id."""
        ...

    async def reseal(
        self,
        operator_id: str,
        config_id: str,
        old: bytes,
        new: bytes,
        note: AuditEntry | None = None,
    ) -> None:
        """Replace a sealed secret wherever the operator's config has it; else nothing."""
        ...


class UpstreamSecrets(Protocol):
    """Seals upstream secrets: AES-256-GCM under a ring of keys, bound to the row."""

    def seal(self, data: bytes, associated: bytes) -> bytes:
        """Sealed under the current key."""
        ...

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """The secret; raises `ValueError` for what no key of the ring sealed for this row."""
        ...

    def is_current(self, sealed: bytes) -> bool:
        """Whether the current key sealed it."""
        ...


class FastPathCall(Protocol):
    """What differs between two requests of the very same bytes, and how this one went."""

    client_address: str
    caller: Caller
    request_id: str
    begun_s: float
    status: int
    outcome: str
    bytes_out: int
