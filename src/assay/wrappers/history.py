"""The revisions of a wrapper, who made them, and what they take in the database.

What a wrapper has been, and who made it so: what was quoted when, and where calls went.

A revision is in force from the moment it was written down until the next one is. Pure.

What a wrapper and its history take in the database, counted for who makes or changes it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from assay.audit.service import ActorKind
from assay.common.costs import Cost, CostLedger
from assay.common.json import JsonValue
from assay.common.numbers import usd
from assay.wrappers.model import WrapperConfig

HIDDEN = "(not shown)"
"""What stands for a secret."""


class FieldChange(NamedTuple):
    """A field by its name on the wire, and its values before and after."""

    field: str
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class Revision:
    """A wrapper as it was; `config.revision` numbers it, from 1."""

    config: WrapperConfig
    at: datetime
    until: datetime | None
    """None: it is the newest."""
    actor_kind: ActorKind | None
    """None: it is older than the history, and nobody knows."""
    actor_id: str | None
    action: str
    """Of the audit trail."""
    changes: Sequence[FieldChange]


def changes_between(before: WrapperConfig, after: WrapperConfig) -> list[FieldChange]:
    """What differs, in the order of the wire; that a secret was changed, and never the secret."""
    found = [
        FieldChange(name, shown(before), shown(after))
        for name, shown in _SHOWN.items()
        if shown(before) != shown(after)
    ]
    old, new = (c.auth.sealed_secret if c.auth else None for c in (before, after))
    if old != new:
        hidden = (None if secret is None else HIDDEN for secret in (old, new))
        found.append(FieldChange("upstreamAuthSecret", *hidden))
    return found


_SHOWN: Mapping[str, Callable[[WrapperConfig], JsonValue]] = MappingProxyType(
    {
        "path": lambda c: c.path,
        "method": lambda c: c.method,
        "pricePerCall": lambda c: usd(c.price),
        "description": lambda c: c.description,
        "rateLimit": lambda c: c.rate_limit,
        "targetUrl": lambda c: c.target_url,
        "paymentProtocol": lambda c: c.protocol,
        "paymentNetwork": lambda c: c.network,
        "payoutAddress": lambda c: c.payout_address,
        "trustEnabled": lambda c: c.trust_enabled,
        "minScore": lambda c: c.min_score,
        "coldStart": lambda c: c.cold_start,
        "identityProof": lambda c: c.identity_proof,
        "settle": lambda c: c.settle,
        "maxBodyBytes": lambda c: c.max_body_bytes,
        "timeoutMs": lambda c: c.timeout_ms,
        "upstreamAuthHeader": lambda c: c.auth.header if c.auth else None,
        "passResponseHeaders": lambda c: list(c.pass_response_headers),
        "corsOrigins": lambda c: list(c.cors_origins),
        "active": lambda c: c.active,
    }
)


_FIXED_BYTES: Final = 512
"""Ids, numbers and names of a row, in bytes: more than they take."""


class WrapperCosts:
    """Counts rows and bytes; without a ledger nothing is counted."""

    def __init__(self, costs: CostLedger | None = None) -> None:
        self._costs = costs

    def require(self) -> None:
        """Raises `QuotaExceeded` where who asks has used up a quota of rows or bytes."""
        if self._costs is not None:
            self._costs.require(Cost.ROWS, Cost.DISK_BYTES)

    def count(self, config: WrapperConfig, changes: Sequence[FieldChange] = ()) -> None:
        """Count a revision that was stored; of a new wrapper its own row as well."""
        if self._costs is None:
            return
        rows = 2 if config.revision == 1 else 1
        self._costs.charge(Cost.ROWS, rows)
        self._costs.charge(Cost.DISK_BYTES, rows * size_of(config) + len(json.dumps(changes)))


def size_of(config: WrapperConfig) -> int:
    """What a wrapper takes, in bytes: more than it does in the database."""
    auth = config.auth
    texts = (config.path, config.description, config.target_url, auth.header if auth else "")
    named = (*texts, *config.pass_response_headers, *config.cors_origins)
    sealed = len(auth.sealed_secret) if auth else 0
    return _FIXED_BYTES + sealed + sum(len(text.encode()) + 1 for text in named)
