"""What each serving process says of itself in the database, for `assay status`.

A process says it every ten seconds. What it said is forgotten half a minute later, or when the
process ends.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Never

from assay import __version__
from assay.app import App
from assay.app.secrets import secret_rings
from assay.common.clock import iso
from assay.common.errors import Unavailable
from assay.common.ids import new_id
from assay.common.keyring import MacKeys
from assay.common.tasks import Tasks
from assay.db.engine import HEAD
from assay.db.state import SqlSharedState
from assay.settings import Settings

SAID_EVERY_S: Final = 10.0
KEPT_S: Final = 30.0
"""Seconds for which a process counts as serving after it last said so: it may miss one time."""

PREFIX: Final = "process "
_NAMES_MAX: Final = 40
"""Names of each kind that are said: a value has at most 4,096 characters."""


@dataclass(frozen=True, slots=True)
class ServingProcess:
    """A serving process, as it described itself."""

    host: str
    pid: int
    version: str
    schema: str
    """The newest schema that its code knows."""
    config: str
    """Equal if all settings are, but for addresses and the data directory; secrets included."""
    began_at: str
    said_at: str
    """Both in ISO 8601."""
    ready: bool
    reasons: Sequence[str]
    degraded: Sequence[str]
    loop_lag_s: float
    waiting_calls: int
    """Calls that it has answered and that are not in the database yet."""
    lost_calls: int
    """Calls that it did not keep, since it began."""


@asynccontextmanager
async def heartbeat(app: App, settings: Settings) -> AsyncGenerator[None]:
    """Describe this process in the database until the block ends; `settings` as they were read.

    While the database does not answer, nothing is said, which `/readyz` says as well.
    """
    state, key = SqlSharedState(app.database, app.clock), PREFIX + new_id()
    config, began_at = config_hash(settings, app.clock.now()), app.clock.now()

    async def say_forever() -> Never:
        while True:
            said = json.dumps(asdict(await _described(app, config, began_at)))
            with suppress(Unavailable):
                await state.put(key, said, KEPT_S)
            await asyncio.sleep(SAID_EVERY_S)

    tasks = Tasks(lambda _, error: app.log.error("status is not written", error=repr(error)))
    tasks.spawn("heartbeat", say_forever())
    try:
        yield
    finally:
        await tasks.drain(0)
        with suppress(Unavailable):
            await state.take(key)


async def serving_processes(state: SqlSharedState) -> Sequence[ServingProcess]:
    """Return the processes that serve, by host and process id. Raises `Unavailable`.

    What another version said is left out where it has other members.
    """
    found: list[ServingProcess] = []
    for text in await state.living(PREFIX, KEPT_S):
        said: dict[str, Any] = json.loads(text)
        with suppress(TypeError):
            found.append(ServingProcess(**said))
    return sorted(found, key=lambda one: (one.host, one.pid))


def config_hash(settings: Settings, now: datetime) -> str:
    """Return 12 hex digits that differ if a setting or a secret does. Raises `SecretFileError`.

    They are keyed by a secret of the service, so that nobody can try out what a setting may be.
    """
    rings = secret_rings(settings, now)
    kept = json.dumps([settings.comparable(), rings], sort_keys=True)
    return MacKeys(b"assay.config|", rings["snapshot"]).mac(kept.encode()).hex()[:12]


async def _described(app: App, config: str, began_at: datetime) -> ServingProcess:
    found, calls = await app.readiness.read(), app.call_log
    return ServingProcess(
        host=socket.gethostname()[:100],
        pid=os.getpid(),
        version=__version__,
        schema=HEAD,
        config=config,
        began_at=iso(began_at),
        said_at=iso(app.clock.now()),
        ready=found.is_ready,
        reasons=found.reasons,
        degraded=found.degraded[:_NAMES_MAX],
        loop_lag_s=round(app.readiness.lag.most_s(), 3),
        waiting_calls=calls.waiting,
        lost_calls=calls.dropped + calls.refused + calls.over_quota,
    )
