"""Lets a visit enter services that require a credential deposited by their owner.

Every request is first sent without it. If the service refuses (401, 403, 407) it is sent again with
the credential, and the visit's later requests to that address carry it at once. So a deposit for an
open service changes nothing, and no visit needs to know which it is. A credential is sent only to
the one origin and path it was deposited for, over https or on this machine, and never in an
unannounced visit. It is removed from responses before they are read. Source: ADR 0039.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Final, Literal, Protocol
from urllib.parse import quote

from assay.common.json import JsonObject, JsonValue
from assay.control.scope import ControlScope, document_scope, scope_of
from assay.net.egress.ports import EgressError, EgressResponse, OutboundRequest, Tap
from assay.net.egress.redaction import Place, Redaction, secrets_in
from assay.registries.model import Subject

REFUSED: Final = frozenset({401, 403, 407})
"""Statuses that demand a credential, or another one."""

NOT_ENTERED: Final = "not_entered"
"""Why a visit without a credential did not test a service."""

CLOSED: Final = "closed"
"""State of a service that was not entered for that reason."""

CLOSED_MAX: Final = 64
"""Remembered addresses that refused a visit."""

EntryOutcome = Literal["entered", "refused", "not_needed"]
"""The result of a deposited credential in a visit: the service accepted it, refused it, or answered
without it."""


@dataclass(frozen=True, slots=True)
class EvaluationCredential:
    """A credential that an agent's owner deposited, for an address and what is below it."""

    id: str
    scope: ControlScope
    place: Place
    name: str
    value: str = field(repr=False)
    others: tuple[ControlScope, ...] = ()
    """Addresses below it that other agents provably control: it is never sent there."""

    def is_for(self, url: str) -> bool:
        """Return whether it may be sent to `url`."""
        target = scope_of(url.partition("#")[0].partition("?")[0])
        if target is None or not is_safe_way(target) or not self.scope.covers(target):
            return False
        # A path that servers read in several ways may belong to another agent.
        return not (self.others and (target.is_exact or any(o.covers(target) for o in self.others)))

    def is_in(self, request: OutboundRequest) -> bool:
        """Return whether the request already has a header in the credential's place."""
        name = self.name.lower()
        return self.place == "header" and any(n.lower() == name for n in request.headers)

    def put_into(self, request: OutboundRequest) -> OutboundRequest:
        """Return the request with the credential, which replaces a query parameter of its name."""
        if self.place == "query":
            return replace(request, url=_with_parameter(request.url, self.name, self.value))
        return replace(request, headers={**request.headers, self.name: self.value})


class EvaluationCredentials(Protocol):
    """Stores owners' deposits."""

    async def usable(self, subject: Subject) -> Sequence[EvaluationCredential]:
        """Return those that may be used for a visit to the agent now. Never raises."""
        ...

    async def note(self, subject: Subject, outcomes: Mapping[str, EntryOutcome]) -> None:
        """Record their results in a visit, by id. Never raises."""
        ...


@dataclass(slots=True)
class _Use:
    """One credential in one visit."""

    credential: EvaluationCredential
    redaction: Redaction
    is_sent: bool = False
    has_entered: bool = False
    is_repeated: bool = False
    """Whether an answer repeated it."""

    @property
    def outcome(self) -> EntryOutcome:
        """Return its result."""
        if self.has_entered:
            return "entered"
        return "refused" if self.is_sent else "not_needed"


class CredentialEntry:
    """The credentials of one visit, and the services that refused it without them."""

    def __init__(
        self, credentials: Sequence[EvaluationCredential] = (), *, is_carried: bool = True
    ) -> None:
        """Create it; without `is_carried` none is sent, but answers are still cleaned of them."""
        # The longest path first: it was deposited for exactly this address.
        ordered = sorted(credentials, key=lambda one: (-len(one.scope.segments), one.id))
        self._uses = [_Use(one, Redaction(secrets_in(one.value))) for one in ordered]
        self._is_carried = is_carried
        self._closed: list[ControlScope] = []
        self.carried = 0
        """Requests sent with a credential."""

    def knows(self, request: OutboundRequest) -> bool:
        """Return whether a credential was deposited for the request's address."""
        return any(use.credential.is_for(request.url) for use in self._uses)

    def carries(self, request: OutboundRequest) -> bool:
        """Return whether the request carries its credential at once: its service refused before."""
        use = self._use_for(request)
        return use is not None and use.is_sent

    def opens(self, request: OutboundRequest, reply: EgressResponse) -> bool:
        """Return whether a request sent without its credential should be repeated with it."""
        if reply.status not in REFUSED:
            return False
        self._note_closed(request.url)
        use = self._use_for(request)
        if use is None:
            return False
        use.is_sent = True
        return True

    def outgoing(self, request: OutboundRequest, *, carries: bool) -> OutboundRequest:
        """Return the request as it is sent."""
        use = self._use_for(request) if carries else None
        found = request if use is None else use.credential.put_into(request)
        self.carried += use is not None
        if found.tap is None or not self._uses:
            return found
        return replace(found, tap=_CleanTap(found.tap, self.clean_line))

    def read(
        self, request: OutboundRequest, reply: EgressResponse, *, carries: bool
    ) -> EgressResponse:
        """Return the answer without any credential in it."""
        use = self._use_for(request) if carries else None
        if use is not None:
            use.has_entered = use.has_entered or reply.status not in REFUSED
        if not self._uses:
            return reply
        headers = tuple((name, self._clean_text(value)) for name, value in reply.headers)
        body = self._clean(reply.body, is_cut=reply.truncated)
        return replace(reply, headers=headers, body=body)

    def failed(self, error: EgressError) -> EgressError:
        """Return the same failure, worded without any credential."""
        if not self._uses:
            return error
        detail = self._clean_text(error.detail)
        return EgressError(error.failure, detail, is_sent=error.is_sent, retry_s=error.retry_s)

    def closed(self, endpoints: Sequence[str]) -> list[str]:
        """Return the declared services that refused a request for lack of a credential."""
        return [url for url in endpoints if any(_is_at(url, scope) for scope in self._closed)]

    def entered(self, endpoints: Sequence[str]) -> list[str]:
        """Return the declared services that a deposited credential opened."""
        opened = [use.credential.scope for use in self._uses if use.has_entered]
        return [url for url in endpoints if any(_is_at(url, scope) for scope in opened)]

    def deposited(self, endpoints: Sequence[str]) -> list[str]:
        """Return the declared services for which a credential was deposited."""
        scopes = [use.credential.scope for use in self._uses]
        return [url for url in endpoints if any(_is_at(url, scope) for scope in scopes)]

    @property
    def outcomes(self) -> dict[str, EntryOutcome]:
        """Return each credential's result, by id; empty if none is carried."""
        if not self._is_carried:
            return {}
        return {use.credential.id: use.outcome for use in self._uses}

    def row(self, endpoints: Sequence[str]) -> JsonObject:
        """Return the member `entry` of the evidence; empty if there is nothing to report.

        `closed` are services that refused, `entered` those a deposited credential opened, and
        `credentials` has the result of each, by the name it is sent under.
        """
        used: list[JsonValue] = [
            {
                "at": use.credential.scope.key.partition(" ")[2],
                "place": use.credential.place,
                "name": use.credential.name,
                "outcome": use.outcome if self._is_carried else "not_carried",
                "repeated": use.is_repeated,
            }
            for use in self._uses
        ]
        said: dict[str, JsonValue] = {
            "closed": [*map(_clean_url, self.closed(endpoints))],
            "entered": [*map(_clean_url, self.entered(endpoints))],
            "credentials": used,
        }
        return {name: value for name, value in said.items() if value}

    def _use_for(self, request: OutboundRequest) -> _Use | None:
        if not self._is_carried or request.is_bare:
            return None
        use = next((use for use in self._uses if use.credential.is_for(request.url)), None)
        # A request with such a field itself tests how the service handles it.
        return None if use is None or use.credential.is_in(request) else use

    def _note_closed(self, url: str) -> None:
        scope = scope_of(url.partition("?")[0])
        if scope is not None and scope not in self._closed and len(self._closed) < CLOSED_MAX:
            self._closed.append(scope)

    def _clean(self, data: bytes, *, is_cut: bool = False) -> bytes:
        for use in self._uses:
            cleaned = use.redaction.clean(data, is_cut=is_cut)
            use.is_repeated = use.is_repeated or (cleaned != data and not is_cut)
            data = cleaned
        return data

    def _clean_text(self, text: str) -> str:
        octets = text.encode("utf-8", "surrogatepass")
        return self._clean(octets).decode("utf-8", "surrogatepass")

    def clean_line(self, line: bytes) -> bytes:
        """Return a line of a stream without any credential."""
        return self._clean(line)


class _CleanTap:
    """Passes a stream on line by line, which no secret spans; drops that of a refusal.

    A refused request may be sent again with a credential: then the stream begins with that answer.
    """

    def __init__(self, tap: Tap, clean: Callable[[bytes], bytes]) -> None:
        self._tap = tap
        self._clean = clean
        self._is_refused = False
        self._line = b""

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Implement `Tap.begin`."""
        self._is_refused = status in REFUSED
        if not self._is_refused:
            self._tap.begin(status, headers)

    def add(self, piece: bytes) -> None:
        """Implement `Tap.add`."""
        if self._is_refused:
            return
        whole, newline, rest = (self._line + piece).rpartition(b"\n")
        self._line = rest
        if newline:
            lines = (whole + newline).splitlines(keepends=True)
            self._tap.add(b"".join(map(self._clean, lines)))


def is_safe_way(scope: ControlScope) -> bool:
    """Return whether transport to it is private: https, or this machine itself."""
    if scope.origin.startswith("https:") or scope.host == "localhost":
        return True
    try:
        return ip_address(scope.host).is_loopback
    except ValueError:
        return False


def _is_at(endpoint: str, scope: ControlScope) -> bool:
    """Return whether an address belongs to a declared service.

    Below or above it, or by its card.
    """
    service, document = scope_of(endpoint), document_scope(endpoint)
    if service is None or document is None:
        return False
    return scope.covers(service) or service.covers(scope) or document.covers(scope)


def _with_parameter(url: str, name: str, value: str) -> str:
    """Return the URL with the parameter, replacing others of its name."""
    address, _, query = url.partition("#")[0].partition("?")
    kept = [pair for pair in query.split("&") if pair and pair.partition("=")[0] != name]
    return f"{address}?{'&'.join([*kept, f'{name}={quote(value, safe=str())}'])}"


def _clean_url(url: str) -> str:
    """Return a declared address in hashable form."""
    return url.encode("utf-8", "replace").decode("utf-8")
