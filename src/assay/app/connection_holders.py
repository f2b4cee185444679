"""Says when one address that is not trusted holds most of the connections.

That is a proxy the settings do not name, or somebody who means to use all connections up. The log
says so, and a file in the data directory tells `assay doctor`, which is another process.
"""

import json
import os
from pathlib import Path

from assay.app.log import Log
from assay.common.clock import Clock

FILE_NAME = "connections.json"
AGAIN_S = 3600.0


class CrowdNotice:
    """Called for every connection of such an address; tells of it once an hour."""

    def __init__(self, data_dir: Path, log: Log, clock: Clock) -> None:
        self._path = data_dir / FILE_NAME
        self._log = log
        self._clock = clock
        self._again_s = 0.0

    def __call__(self, address: str, count: int, total: int) -> None:
        """`address` holds `count` of `total` connections."""
        now_s = self._clock.monotonic_s()
        if now_s < self._again_s:
            return
        self._again_s = now_s + AGAIN_S
        self._log.warning(
            "one address holds most connections",
            address=address,
            count=count,
            of=total,
            next="if it is a proxy of yours, name it in ASSAY_TRUSTED_PROXIES",
        )
        at = self._clock.now().isoformat().replace("+00:00", "Z")
        found = {"address": address, "held": count, "of": total, "at": at}
        try:
            self._write(json.dumps(found))
        except OSError as error:
            self._log.warning("cannot tell doctor of it", error=str(error))

    def _write(self, text: str) -> None:
        temporary = self._path.with_suffix(f".{os.getpid()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(temporary, flags, 0o600), "w") as out:
            out.write(text)
        temporary.replace(self._path)
