"""How many connections one address, one network and everybody may hold, and what one may cost.

A connection beyond a cap is not closed unheard: a health check or a reader of our keys may come
from a crowded address. It gets a moment to send the head of one request, and only those paths are
answered on it. Few such connections are kept: for the next, the oldest of the network that has most
is dropped, so that nobody drops the health check of others.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from assay.common.addresses import caller_of, network_around
from assay.common.errors import TooMany

ALWAYS_ANSWERED: Final = frozenset({b"/operator/health", b"/api/health", b"/.well-known/jwks.json"})
"""Paths that share no limit with strangers: each is a constant answer to a GET or HEAD."""

PROVISIONAL_MAX: Final = 64
"""Connections beyond a cap that are given a moment."""

CROWD_MIN: Final = 32
"""Below so many connections in all, half of them are no sign of anything."""

PIECE_BYTES: Final = 256 * 1024
"""Of a whole answer, what is given to the connection at once."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Times in seconds, sizes in bytes."""

    head_s: float = 15.0
    """How long the head of a request may take, from the connection or its first byte on."""
    head_bytes: int = 64 * 1024
    """Largest head of a request, the empty line at its end included."""
    unread_s: float = 60.0
    """How long a caller may leave what waits for it unread before the connection is cut."""
    linger_s: float = 15.0
    """How long the rest of a body may take whose request has been answered already."""
    late_parsed_bytes: int = 64 * 1024
    """How much of such a body is parsed where it comes in chunks; then the connection ends."""
    late_bytes: int = 4 * 1024 * 1024
    """How much of it is read at all: a caller that only sends must still find its answer."""
    provisional_s: float = 2.0
    """How long a connection beyond a cap has for the head of its one request."""
    ahead_bytes: int = 64 * 1024
    """What is kept of requests sent ahead, so that a caller's going away is still heard."""


BOUNDS: Final = ConnectionBounds()


@dataclass(frozen=True, slots=True)
class ConnectionCaps:
    """Connections at a time."""

    total: int = 2000
    per_address: int = 512
    """Of an IPv4 address, or an IPv6 network of 64 bits."""
    per_network: int = 1024
    """Of an IPv4 network of 24 bits, or an IPv6 network of 48."""


class TooManyConnections(TooMany):
    """The caller's address or network holds as many connections as it may."""

    code = "too_many_connections"


class CountedConnection(Protocol):
    """A connection as its counter knows it."""

    def drop(self) -> None:
        """End it at once."""
        ...


class Connections:
    """Counts the connections of this process."""

    def __init__(
        self,
        caps: ConnectionCaps,
        is_trusted: Callable[[str], bool],
        on_crowd: Callable[[str, int, int], None],
    ) -> None:
        """`on_crowd(address, held, total)`: an untrusted address holds more than half of all."""
        self._caps = caps
        self._is_trusted = is_trusted
        self._on_crowd = on_crowd
        self._admitted: dict[CountedConnection, tuple[str, str]] = {}
        self._open: Counter[str] = Counter()
        self._provisional: OrderedDict[CountedConnection, str] = OrderedDict()

    def admit(self, connection: CountedConnection, peer: str) -> bool:
        """Whether the connection is within every cap; else it is a provisional one."""
        address, network = caller_of(peer), network_around(peer)
        is_trusted = self._is_trusted(peer)
        caps = self._caps
        if len(self._admitted) >= caps.total or not (
            is_trusted
            or (
                self._open[address] < caps.per_address
                and self._open["net " + network] < caps.per_network
            )
        ):
            self._keep_provisional(connection, network)
            return False
        keys = address, "net " + network
        self._admitted[connection] = keys
        for key in keys:
            self._open[key] += 1
        count, total = self._open[address], len(self._admitted)
        if not is_trusted and total >= CROWD_MIN and 2 * count > total:
            self._on_crowd(address, count, total)
        return True

    @property
    def is_full(self) -> bool:
        """Whether everybody together holds as many as may be."""
        return len(self._admitted) >= self._caps.total

    def release(self, connection: CountedConnection) -> None:
        """Forget a connection that has ended."""
        self._provisional.pop(connection, None)
        for key in self._admitted.pop(connection, ()):
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    def _keep_provisional(self, connection: CountedConnection, network: str) -> None:
        kept = self._provisional
        kept[connection] = network
        if len(kept) > PROVISIONAL_MAX:
            [(most, _)] = Counter(kept.values()).most_common(1)
            oldest = next(one for one, its in kept.items() if its == most)
            del kept[oldest]
            oldest.drop()
