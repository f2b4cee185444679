"""What a wrapper and its history take in the database, counted for who makes or changes it."""

import json
from collections.abc import Sequence
from typing import Final

from assay.common.costs import Cost, CostLedger
from assay.wrappers.history import FieldChange
from assay.wrappers.model import WrapperConfig

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
