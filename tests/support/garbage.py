"""Counts the requests that a service has left to the garbage collector, when it is sent SIGUSR1.

Only tests let the service import this. The collector runs then alone; how many exchanges it found
that nobody used is a line of the file that GARBAGE_FILE names.
"""

import gc
import os
import signal
from pathlib import Path
from types import FrameType

from assay.server.request_context import RequestContext


def _count(_number: int, _frame: FrameType | None) -> None:
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = sum(isinstance(one, RequestContext) for one in gc.garbage)
    gc.garbage.clear()
    with Path(os.environ["GARBAGE_FILE"]).open("a", encoding="ascii") as lines:  # noqa: TID251
        lines.write(f"{found}\n")


gc.disable()
signal.signal(signal.SIGUSR1, _count)
