"""What wrappers need of the outside."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from assay.accounts.audit import Note
from assay.egress.url import Target
from assay.payments.model import Headers
from assay.wrapper.callers import Caller
from assay.wrapper.history import FieldChange, Revision
from assay.wrapper.model import UpstreamFailed, WrapperConfig

QUOTES_MAX: Final = 100
"""Revisions of one wrapper, price and network that a payment is held against."""


ChangeResult = Literal["changed", "overlaps", "stale"]


class WrapperStore(Protocol):
    """Wrapper configs, and what they have been: each change is a revision, in one transaction."""

    async def add(self, config: WrapperConfig, route_key: str, note: Note | None = None) -> bool:
        """Store; False when an active config of the operator has the same route key."""
        ...

    async def find(self, operator_id: str, config_id: str) -> WrapperConfig | None:
        """The operator's config of this id, active or not."""
        ...

    async def owner_for_admin(self, config_id: str) -> str | None:
        """The id of the operator whose config it is."""
        ...

    async def change(
        self, config: WrapperConfig, changes: Sequence[FieldChange], note: Note
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

    async def deactivate(self, operator_id: str, config_id: str, note: Note | None = None) -> bool:
        """Whether the operator has such a config; it is inactive afterwards."""
        ...

    async def sealed(self, operator_id: str) -> Sequence[tuple[str, bytes]]:
        """The sealed secrets of the operator's configs and revisions, each once, with its id."""
        ...

    async def reseal(
        self, operator_id: str, config_id: str, old: bytes, new: bytes, note: Note | None = None
    ) -> None:
        """Replace a sealed secret wherever the operator's config has it; else nothing."""
        ...


class Secrets(Protocol):
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


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to an operator's upstream. `headers` are complete but for framing and Host."""

    method: str
    target: Target
    path_and_query: bytes
    headers: Headers
    body: "bytes | AsyncIterator[bytes]"
    content_length: int | None
    """Of a body in pieces, where it is known; else it goes out chunked."""
    timeout_s: float
    repeatable: bool = False
    """Whether it may be sent again when a kept connection closed under it, body or not."""
    account: str = ""
    """The operator whose wrapper it is for: what waits for one operator holds up no other."""
    caller: Caller | None = None
    """Whom it is counted for at its upstream; None for requests of this service itself."""


class UpstreamReply(Protocol):
    """An answer whose head has arrived; names of headers are lower case."""

    status: int
    headers: Headers

    @property
    def whole(self) -> bytes | None:
        """The body, where all of it has arrived already."""
        ...

    def body(self) -> AsyncGenerator[bytes]:
        """The body as it arrives. Raises `UpstreamFailed` when it breaks off."""
        ...

    def close(self) -> None:
        """Give up what has not been read. Harmless at the end."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class AnswerHead:
    """Status and headers of an answer; names are lower case.

    The very same object may stand for an upstream that says the very same again: what was made of
    it once may be remembered by it.
    """

    status: int
    headers: Headers


class ReplySink(Protocol):
    """Takes an answer as it arrives, without waiting; every call is made from the event loop."""

    def on_head(self, head: AnswerHead) -> None:
        """The head, once."""
        ...

    def on_piece(self, piece: bytes | memoryview) -> None:
        """A piece of the body.

        The memory of a view is used again once the `flush` or `on_end` that follows has returned,
        unless the exchange was told to keep it by then.
        """
        ...

    def flush(self) -> None:
        """No more for the moment."""
        ...

    def on_end(self) -> None:
        """The answer is whole."""
        ...

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        """It broke off; `untouched` when not a byte of an answer had come."""
        ...


class Trip(Protocol):
    """What differs between two requests of the very same bytes, and how this one went."""

    client_address: str
    caller: Caller
    request_id: str
    begun_s: float
    status: int
    outcome: str
    bytes_out: int


class Exchange(Protocol):
    """A request under way whose answer goes to a sink."""

    def pause(self) -> None:
        """Take no more of the answer for now."""
        ...

    def resume(self) -> None:
        """Go on."""
        ...

    def keep_piece(self) -> None:
        """The memory of the last piece is still needed."""
        ...

    def abort(self) -> None:
        """Give it up; the sink hears no more."""
        ...


class Reserved(Exchange, Protocol):
    """An exchange that has its connection, and has not begun."""

    def begin(self, more: bytes) -> bool:
        """Send the request, with `more` whole lines of headers; False when that cannot be now.

        The sink hears of the answer later, never before this returns.
        """
        ...

    def release(self) -> None:
        """Give the connection back, unused."""
        ...


class Prepared(Protocol):
    """A request without a body, ready to be sent as often as it is asked for."""

    def reserve(self, sink: ReplySink, caller: Caller) -> Reserved | None:
        """A kept connection to send it over; None without one, or when the caller may not now."""
        ...


class Upstream(Protocol):
    """The guarded way to upstreams: judges, dials what was judged, keeps connections alive."""

    def prepare(self, request: UpstreamRequest) -> Prepared:
        """A request without a body, made ready once."""
        ...

    async def send(self, request: UpstreamRequest) -> UpstreamReply:
        """One request, and the head of its answer (any status but 1xx).

        Raises `UpstreamFailed`, and where nothing was sent: `kit.errors.Unavailable` for one that
        waited for this service, and `UpstreamBusy` for a caller with too many.
        A request is sent at most once, but for one that met a kept connection just being closed and
        has no body: that one is sent again.
        """
        ...
