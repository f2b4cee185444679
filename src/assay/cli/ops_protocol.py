"""The server's protocol for metrics: few connections, one request on each, and a time for it."""

import asyncio
from typing import Final

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX: Final = 32
"""At a time; of one address a quarter. Beyond it the oldest without a request is dropped."""

PER_ADDRESS: Final = CONNECTIONS_MAX // 4

CONNECTION_S: Final = 10.0
"""From being accepted to the end of the answer. A page takes a second at most."""


class OpsProtocol(H11Protocol):
    """Uvicorn's protocol, within bounds that hold before a first request has come."""

    _open: list["OpsProtocol"]
    """The connections of this server, oldest first."""
    _end: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        own = [one for one in self._open if one.address == self.address]
        for connections, most in ((own, PER_ADDRESS), (self._open, CONNECTIONS_MAX)):
            if len(connections) >= most and not _drop_idle(connections):
                transport.abort()
                return
        self._open.append(self)
        self._end = self.loop.call_later(CONNECTION_S, self.drop)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._let_go()
        super().connection_lost(exc)

    @property
    def address(self) -> str:
        """Of whoever asks."""
        return self.client[0] if self.client else ""

    def drop(self) -> None:
        """End it at once."""
        self._let_go()
        self.transport.abort()

    def _let_go(self) -> None:
        if self._end is not None:
            self._end.cancel()
        if self in self._open:
            self._open.remove(self)


def _drop_idle(connections: list[OpsProtocol]) -> bool:
    """Drop the oldest whose request has not come; whether there was one."""
    idle = next((one for one in connections if not one.cycle), None)
    if idle is not None:
        idle.drop()
    return idle is not None


def ops_protocol() -> type[OpsProtocol]:
    """The protocol of one server, whose connections are counted together."""
    return type("OpsProtocol", (OpsProtocol,), {"_held": []})
