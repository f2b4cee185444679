"""What a caller may cost a connection, in time and in memory."""

from dataclasses import dataclass
from typing import Final


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


PIECE_BYTES = 256 * 1024
"""Of a whole answer, what is given to the connection at once."""
