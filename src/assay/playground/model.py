"""A call made for an operator, and its result.

Source: interface.md#proxy-and-playground-results, #proxy-and-playground.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from assay.common.errors import ServiceError, TooMany
from assay.gate.model import Decision

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

HEADERS_MAX: Final = 64
HEADER_CHARS_MAX: Final = 8192


class ProxyFailed(ServiceError):
    """The target did not answer, or not with HTTP; `reason` says which."""

    code = "proxy_request_failed"


class EgressBudgetSpent(TooMany):
    """The target host's budget of requests or bytes is used up for now (ADR 0016)."""

    code = "egress_budget"


@dataclass(frozen=True, slots=True)
class ProxyCall:
    """A request to send, and its target."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str | None = None


@dataclass(frozen=True, slots=True)
class ProxyReply:
    """The target's answer. A body that is not text is given in base64."""

    status: int
    headers: Mapping[str, str]
    body: str
    encoding: Literal["utf-8", "base64"]
    truncated: bool
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class ProxyResult:
    """The target's answer, and the agent's grade."""

    reply: ProxyReply
    decision: Decision
