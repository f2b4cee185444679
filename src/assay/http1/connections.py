"""Bounds on connections per address, per network and in all, and on the cost of one connection.

A connection beyond a cap is not closed at once: a health check or a client that reads our keys may
come from a crowded address. It has a short time to send the head of one request, and only the paths
in `ALWAYS_ANSWERED` are answered on it. Few such connections are kept. For the next one, the oldest
of the network that has the most is dropped, so that no network can drop the health checks of
others.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from assay.common.addresses import caller_of, network_around
from assay.common.errors import TooMany

ALWAYS_ANSWERED: Final = frozenset(
    {b"/operator/health", b"/api/health", b"/livez", b"/readyz", b"/.well-known/jwks.json"}
)
"""Paths exempt from the connection caps: each is a constant answer to a GET or HEAD."""

PROVISIONAL_MAX: Final = 64
"""Connections beyond a cap that are kept provisionally."""

CROWD_MIN: Final = 32
"""Below this total, one address that holds half of the connections is not reported."""

PIECE_BYTES: Final = 256 * 1024
"""Bytes of a complete answer written to the connection at once."""


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """Bounds of one connection. Times in seconds, sizes in bytes."""

    head_s: float = 15.0
    """Time for the head of a request, from the connection or its first byte on."""
    head_bytes: int = 64 * 1024
    """Largest head of a request, including the empty line at its end."""
    unread_s: float = 60.0
    """Time a caller may leave pending data unread before the connection is cut."""
    linger_s: float = 15.0
    """Time for the rest of a body whose request has already been answered."""
    late_parsed_bytes: int = 64 * 1024
    """Bytes of such a body that are parsed if it is chunked; then the connection ends."""
    late_bytes: int = 4 * 1024 * 1024
    """Bytes of such a body that are read: a caller that only sends must still receive its
    answer."""
    provisional_s: float = 2.0
    """Time a connection beyond a cap has for the head of its one request."""
    ahead_bytes: int = 64 * 1024
    """Bytes kept of pipelined requests, so that a caller's disconnect is still detected."""


BOUNDS: Final = ConnectionBounds()


@dataclass(frozen=True, slots=True)
class ConnectionCaps:
    """Largest numbers of concurrent connections."""

    total: int = 2000
    per_address: int = 512
    """For one IPv4 address, or one IPv6 network of 64 bits."""
    per_network: int = 1024
    """For one IPv4 network of 24 bits, or one IPv6 network of 48."""


class TooManyConnections(TooMany):
    """The caller's address or network already has as many connections as allowed."""

    code = "too_many_connections"


class CountedConnection(Protocol):
    """What `Connections` needs of a connection."""

    def drop(self) -> None:
        """Close it at once."""
        ...


class Connections:
    """Counts the connections of this process per address and network."""

    def __init__(
        self,
        caps: ConnectionCaps,
        is_trusted: Callable[[str], bool],
        on_crowd: Callable[[str, int, int], None],
    ) -> None:
        """Call `on_crowd(address, held, total)` when an untrusted address has over half of all."""
        self._caps = caps
        self._is_trusted = is_trusted
        self._on_crowd = on_crowd
        self._admitted: dict[CountedConnection, tuple[str, str]] = {}
        self._open: Counter[str] = Counter()
        self._provisional: OrderedDict[CountedConnection, str] = OrderedDict()

    def admit(self, connection: CountedConnection, peer: str) -> bool:
        """Count a connection.

        Return whether it is within every cap (otherwise it is provisional).
        """
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
        """Return whether the total number of connections has reached its cap."""
        return len(self._admitted) >= self._caps.total

    @property
    def held(self) -> int:
        """The connections that are open, beyond the caps as well."""
        return len(self._admitted) + len(self._provisional)

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
