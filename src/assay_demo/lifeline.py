"""A process that ends with the one that started it, however that one ended."""

import os
import sys
import threading


def hold() -> None:
    """Where `ASSAY_DEMO_LIFELINE` is set, end this process when its standard input ends.

    The starter holds the other end of that pipe and never writes: only its own end closes it,
    and a kill does that too.
    """
    if os.environ.get("ASSAY_DEMO_LIFELINE"):  # noqa: TID251 - between the demo and its children
        threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
