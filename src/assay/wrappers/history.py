"""The revisions of a wrapper, who made them, and the storage that they take. Pure.

A revision is in force from when it was written until the next one is. Storage counts for the
operator who creates or changes a wrapper.
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
"""What is shown instead of a secret."""


class FieldChange(NamedTuple):
    """A field by its name on the wire, with its values before and after."""

    field: str
    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class Revision:
    """A wrapper as it was; `config.revision` numbers it, from 1."""

    config: WrapperConfig
    at: datetime
    until: datetime | None
    """None for the newest."""
    actor_kind: ActorKind | None
    """None if it is older than the history, so that nobody knows."""
    actor_id: str | None
    action: str
    """The action in the audit trail."""
    changes: Sequence[FieldChange]


def changes_between(before: WrapperConfig, after: WrapperConfig) -> list[FieldChange]:
    """Return what differs, in the order of the wire; of a secret only that it changed."""
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


def fields_of(config: WrapperConfig) -> list[FieldChange]:
    """Return every field of a new wrapper that has a value, in the order of the wire."""
    shown = [FieldChange(name, None, show(config)) for name, show in _SHOWN.items()]
    secret = [FieldChange("upstreamAuthSecret", None, HIDDEN)] if config.auth else []
    return [one for one in (*shown, *secret) if one.after not in (None, "", [])]


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
        "pricing": lambda c: [
            {
                "minTier": one.min_tier,
                "pricePerCall": usd(one.price),
                "rateLimit": one.rate_limit,
            }
            for one in c.pricing
        ],
        "freeQuota": lambda c: (
            None if c.free_quota is None else {"calls": c.free_quota.calls, "per": c.free_quota.per}
        ),
        "enforce": lambda c: c.enforce,
        "active": lambda c: c.active,
    }
)


_FIXED_BYTES: Final = 512
"""Bytes for ids, numbers and names of a row: more than they take."""


class WrapperCosts:
    """Counts rows and bytes; without a ledger it counts nothing."""

    def __init__(self, costs: CostLedger | None = None) -> None:
        self._costs = costs

    def require(self) -> None:
        """Raise `QuotaExceeded` if the caller has used up a quota of rows or bytes."""
        if self._costs is not None:
            self._costs.require(Cost.ROWS, Cost.DISK_BYTES)

    def count(self, config: WrapperConfig, changes: Sequence[FieldChange] = ()) -> None:
        """Count a stored revision, and for a new wrapper its own row as well."""
        if self._costs is None:
            return
        rows = 2 if config.revision == 1 else 1
        self._costs.charge(Cost.ROWS, rows)
        self._costs.charge(Cost.DISK_BYTES, rows * size_of(config) + len(json.dumps(changes)))


def size_of(config: WrapperConfig) -> int:
    """Return the storage of a wrapper in bytes; it takes less in the database."""
    auth = config.auth
    texts = (config.path, config.description, config.target_url, auth.header if auth else "")
    named = (*texts, *config.pass_response_headers, *config.cors_origins)
    sealed = len(auth.sealed_secret) if auth else 0
    return _FIXED_BYTES + sealed + sum(len(text.encode()) + 1 for text in named)
