"""Calls a target for an operator through the egress guard.

Source: interface.md#blocked-addresses.
"""

import base64
import re
from collections.abc import Mapping
from math import ceil
from typing import Final

from assay.accounts.allowance import require
from assay.accounts.model import Feature, Operator
from assay.chains.model import Network
from assay.common.egress_budget import EgressUse, egress_use
from assay.common.errors import InvalidRequest, Problem
from assay.gate.model import GateInput
from assay.gate.service import Asker, Gate
from assay.net.egress.credentials import OwnCredentials
from assay.net.egress.fields import REQUEST_FIELDS, via_mark
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.playground.model import (
    HEADER_CHARS_MAX,
    HEADERS_MAX,
    METHODS,
    EgressBudgetSpent,
    ProxyCall,
    ProxyFailed,
    ProxyReply,
    ProxyResult,
)
from assay.registries.subjects import canonical_agent_id

LIMITS: Final = Limits(connect_s=5.0, total_s=20.0, body_bytes_max=1024 * 1024)

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_DECODED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that no longer describe a body after it was decoded and read to its end."""

_SAID: Final = {
    Failure.NAME: "The target's name could not be resolved.",
    Failure.CONNECT: "The target could not be connected to.",
    Failure.TLS: "The target's certificate does not hold.",
    Failure.TIMEOUT: "The target did not answer in time.",
    Failure.PROTOCOL: "The target did not answer with HTTP.",
}


class ProxyCaller:
    """Sends operators' requests to addresses that they name, under our own name.

    The target sees the caller in `User-Agent` and `Via`. It receives neither fields reserved for a
    proxy or us, nor any credential of ours (`net.egress.fields`, `net.egress.credentials`).
    """

    def __init__(
        self, http: EgressClient, egress: EgressPolicy, credentials: OwnCredentials, address: str
    ) -> None:
        """Create it; `address` is this service's own."""
        self._http = http
        self._egress = egress
        self._credentials = credentials
        self._named = {
            "user-agent": f"Assay-Proxy/1 (calls made for an operator; {address})",
            "via": f"1.1 {via_mark(address).decode()}",
        }

    def check(self, asked: ProxyCall, field: str = "targetUrl") -> None:
        """Refuse a request that cannot be sent, before any look-up or request.

        `field` is the address's name in a refusal. Raises `InvalidRequest`.
        """
        found = _problems(asked)
        target = parse_target(asked.url, self._egress)
        if isinstance(target, RefusedUrl):
            found.append(Problem(("body", field), target.why))
        if found:
            raise InvalidRequest("The request cannot be sent like this.", details=found[:20])

    async def call(
        self,
        operator_id: str,
        asked: ProxyCall,
        field: str = "targetUrl",
        added: Mapping[str, str] | None = None,
    ) -> ProxyReply:
        """Return the target's answer, whatever its status; redirects are left to the operator.

        `added` are headers of ours, with lower-case names; they replace the operator's. The call
        counts in the egress budget of the target's host, of which an operator may use at most a
        quarter; an answer is cut when the budget is used up. Raises `InvalidRequest` like `check`,
        also for a name that resolves to an internal address, `EgressBudgetSpent` and `ProxyFailed`.
        """
        self.check(asked, field)
        body = (asked.body or "").encode()
        headers = self._headers(asked.headers) | self._named | dict(added or {})
        outgoing = OutboundRequest(asked.method, self._url(asked.url), headers, body)
        try:
            with egress_use(EgressUse(account=operator_id)):
                reply = await self._http.send(outgoing, LIMITS)
        except EgressError as error:
            if error.failure is Failure.REFUSED_ADDRESS:
                details = [Problem(("body", field), "this address is not called")]
                raise InvalidRequest("The address is not called.", details=details) from error
            if error.failure is Failure.BUDGET:
                raise EgressBudgetSpent(
                    "This service has sent the target's host what it may in a minute: try later.",
                    detail=error.detail,
                    retry_after_s=max(1, ceil(error.retry_s)),
                ) from error
            said = _SAID[error.failure]
            raise ProxyFailed(said, detail=error.detail, reason=error.failure.value) from error
        return _reply(reply)

    def _headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return those headers of an operator that are forwarded, by lower-case names."""
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()]
        passed = [header for header in raw if REQUEST_FIELDS.passes(header[0])]
        kept = self._credentials.headers(passed)
        return {name.decode(): value.decode("latin-1") for name, value in kept}

    def _url(self, url: str) -> str:
        """Return the address without credentials of ours in its query."""
        base, mark, query = url.partition("#")[0].partition("?")
        if not mark:
            return url
        kept = self._credentials.query(query)
        return base if kept is None else f"{base}?{kept}"


class Proxy:
    """The proxy of the Pro plan."""

    def __init__(self, caller: ProxyCaller, gate: Gate, upgrade_url: str) -> None:
        self._caller = caller
        self._gate = gate
        self._upgrade_url = upgrade_url

    async def call(
        self, operator: Operator, network: Network, agent_id: str, asked: ProxyCall
    ) -> ProxyResult:
        """Return the target's answer and the agent's grade.

        Raises `PlanRequired`, `InvalidRequest`, `AgentNotFound`, `ChainUnavailable`,
        `EvidenceUnavailable` and `ProxyFailed`.
        """
        require(operator.plan, Feature.PROXY, self._upgrade_url)
        self._caller.check(asked)
        known = canonical_agent_id(network, agent_id)
        decision = self._gate.assess_cached(network, known, GateInput())
        if decision is None:
            asker = Asker(operator.id)
            decision = await self._gate.assess(network, known, GateInput(), asker)
        return ProxyResult(await self._caller.call(operator.id, asked), decision)


def _problems(asked: ProxyCall) -> list[Problem]:
    found: list[Problem] = []
    if asked.method not in METHODS:
        found.append(Problem(("body", "method"), f"must be one of {', '.join(sorted(METHODS))}"))
    if len(asked.headers) > HEADERS_MAX:
        found.append(Problem(("body", "headers"), f"are more than {HEADERS_MAX}"))
    for name, value in asked.headers.items():
        if (
            not _NAME.fullmatch(name)
            or len(value) > HEADER_CHARS_MAX
            or not _VALUE.fullmatch(value)
        ):
            found.append(Problem(("body", "headers", name[:100]), "is no header that can be sent"))
    if asked.body and any("\ud800" <= char <= "\udfff" for char in asked.body):
        found.append(Problem(("body", "body"), "is not Unicode text"))
    return found


def _reply(reply: EgressResponse) -> ProxyReply:
    headers: dict[str, str] = {}
    for name, value in reply.headers:
        if name not in _DECODED:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    # A truncated text may end within a character; base64 would hide its readable part.
    errors = "ignore" if reply.truncated else "strict"
    try:
        body, encoding = reply.body.decode("utf-8", errors), "utf-8"
    except UnicodeDecodeError:
        body, encoding = base64.b64encode(reply.body).decode(), "base64"
    return ProxyReply(
        status=reply.status,
        headers=headers,
        body=body,
        encoding="utf-8" if encoding == "utf-8" else "base64",
        truncated=reply.truncated,
        elapsed_ms=round(reply.elapsed_ms, 3),
    )
