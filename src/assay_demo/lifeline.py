"""A process that ends with the one that started it, however that one ended."""

import os
import sys
import threading


def hold() -> None:
    """Where `LIFELINE_ON_STDIN` is set, end this process when its standard input ends.

    The starter holds the other end of that pipe and never writes: only its own end closes it,
    and a kill does that too.
    """
    if os.environ.get("LIFELINE_ON_STDIN"):  # noqa: TID251 - between the demo and its children
        threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
