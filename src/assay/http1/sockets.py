"""Sockets to wrappers' upstreams: with a bound on what is under way that nobody reads here."""

import asyncio
import socket
from typing import Final

WINDOW_BYTES: Final = 192 * 1024
"""Asked for as receive buffer; Linux doubles it, and offers about half of that as the window. At 50
ms of round trip that is 4 MB a second. Left alone, Linux takes up to 32 MiB that no caller may ever
want."""


async def connected_socket(address: str, port: int) -> socket.socket:
    """A connected socket to a judged address. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)  # noqa: FBT003 - its only form
        # A small body is not held until its head is acknowledged.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Before it connects: a window that was offered cannot be taken back.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made
