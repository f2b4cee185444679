"""`assay serve --workers N`: supervises processes that accept connections of one socket.

The supervisor listens, creates the secrets, starts the workers, replaces those that end, and counts
what they share: limits and metrics. It answers no caller. Each worker is a new interpreter, so that
a rolling restart runs what is installed by then. Source: ADR 0059.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from assay.app.log import Log
from assay.cli.command import FAILED
from assay.cli.ops import PATH, READY_PATH, Page, readiness_page
from assay.cli.worker_link import Answer, Link, LinkLost, LinkSilent, counting
from assay.cli.worker_metrics import MEDIA_TYPE, WorkerMetrics, own_metrics
from assay.common.cache import SingleFlight
from assay.common.clock import SystemClock
from assay.common.quota_lease import LocalWindow
from assay.settings import Settings, bind_address

PAUSE_S: Final = 0.5
PAUSE_MAX_S: Final = 30.0
"""Seconds before a worker that ended is started again: twice as long after each end, at most so."""

ASKED_S: Final = 2.0
"""Seconds that a page waits for the workers. One of metrics waits a second for the database."""

WATCHED_EVERY_S: Final = 5.0
HUNG_S: Final = 30.0
"""Seconds without an answer after which a worker is killed."""

STEADY_S: Final = 60.0
"""A worker that has served for so long is started again after `PAUSE_S`."""


@dataclass(eq=False)
class Worker:
    """A running worker."""

    process: asyncio.subprocess.Process
    link: Link
    ready: asyncio.Event
    """Set once it accepts connections."""
    ready_s: float = float("inf")

    @property
    def is_serving(self) -> bool:
        """Return whether it accepts connections, or answers those that it has."""
        return self.ready.is_set() and self.process.returncode is None

    async def settled(self) -> bool:
        """Return whether it serves, as soon as it does or has ended."""
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(self.ready.wait()), group.create_task(self.process.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        return self.process.returncode is None

    def stop(self, *, now: bool) -> None:
        """Let it stop by the rules of a process; `now`: without waiting until it is unready."""
        if self.ready.is_set():
            self.link.say("stop now" if now else "stop")
        else:
            with suppress(ProcessLookupError):
                self.process.terminate()


@dataclass
class Supervision:
    """What became of the workers."""

    died: int = 0
    """Workers that ended without being asked to."""
    replaced: int = 0
    """Workers that a rolling restart replaced."""
    serving: dict[int, Worker] = field(default_factory=dict[int, Worker])
    """The worker of each place, from 1."""


_ROLL_ENDED: Final = "the rolling restart has ended: a new worker did not start, the others go on"


class Supervisor:
    """Runs as many workers as the settings say until it is asked to stop."""

    def __init__(
        self, settings: Settings, arguments: Sequence[str], listener: socket.socket, log: Log
    ) -> None:
        """Create it; `arguments` are those of `assay serve` for each worker."""
        self.state = Supervision()
        self._settings = settings
        self._arguments = arguments
        self._listener = listener
        self._log = log
        self._clock = SystemClock()
        self._window = LocalWindow(self._clock)
        self._running: set[Worker] = set()
        self._metrics = WorkerMetrics()
        self._pages: SingleFlight[tuple[HTTPStatus, str, bytes]] = SingleFlight()
        self._replacing = asyncio.Lock()
        self._is_stopping = asyncio.Event()
        self._is_asked_to_roll = asyncio.Event()

    async def run(self, announce: Callable[[], None]) -> int:
        """Return the status: that of the first worker if it could not start, else 0.

        `announce` is called once all workers serve.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._is_asked_to_roll.set)
        places = range(1, self._settings.workers + 1)
        async with asyncio.TaskGroup() as group:
            self._group = group
            first = self.state.serving[1] = await self._start()
            if not await first.settled():
                return 0 if self._is_stopping.is_set() else first.process.returncode or FAILED
            for place in places[1:]:
                if not self._is_stopping.is_set():
                    self.state.serving[place] = await self._start()
            for worker in [*self.state.serving.values()]:
                await worker.settled()
            if not self._is_stopping.is_set():
                announce()
            rolling = group.create_task(self._roll_forever())
            async with asyncio.TaskGroup() as keeping:
                for place in self.state.serving:
                    keeping.create_task(self._keep(place))
            rolling.cancel()
        return 0

    def stop(self) -> None:
        """Stop every worker; when called again, without waiting until they are unready."""
        now = self._is_stopping.is_set()
        self._is_stopping.set()
        self._listener.close()  # otherwise callers would wait at a socket that nobody accepts from
        for worker in self._running:
            worker.stop(now=now)

    def pages(self) -> Mapping[str, Page]:
        """Return the pages of `ASSAY_OPS_BIND`, by path: of all workers together."""
        return {PATH: self._metrics_page, READY_PATH: self._readiness_page}

    async def _metrics_page(self) -> tuple[HTTPStatus, str, bytes]:
        """Return one page; scrapes at the same time share it, as adding pages up delays limits."""
        return await self._pages.run("", self._added_up)

    async def _added_up(self) -> tuple[HTTPStatus, str, bytes]:
        answers = await self._asked("metrics")
        # What one that has ended meanwhile counted is in the sums already.
        found = {one: said for one, said in answers.items() if one.process.returncode is None}
        own = own_metrics(
            self._settings.workers,
            sum(worker.is_serving for worker in self.state.serving.values()),
            len(found),
            {"ended": self.state.died, "rolling": self.state.replaced},
        )
        page = self._metrics.page({one.process.pid: said for one, said in found.items()}, own)
        return HTTPStatus.OK, MEDIA_TYPE, page

    async def _readiness_page(self) -> tuple[HTTPStatus, str, bytes]:
        """Return whether any worker is ready, and what each of them says."""
        found = await self._asked("readiness")
        shown: list[Mapping[str, Any]] = [
            {"pid": worker.process.pid, **said} for worker, said in found.items()
        ]
        is_ready = any(one["ready"] for one in shown)
        reasons = {name for one in shown for name in one["reasons"] if not is_ready}
        return readiness_page(
            {
                "ready": is_ready,
                "reasons": sorted(reasons) or ([] if is_ready else ["workers"]),
                "degraded": sorted({name for one in shown for name in one["degraded"]}),
                "loopLagS": max((one["loopLagS"] for one in shown), default=0.0),
                "workers": shown,
            }
        )

    async def _asked(self, name: str) -> "dict[Worker, Any]":
        """Return what each worker that serves answers; those that do not in time are left out."""
        found: dict[Worker, Any] = {}

        async def ask(worker: Worker) -> None:
            with suppress(LinkLost):
                found[worker] = await worker.link.ask(name, None, ASKED_S)

        async with asyncio.TaskGroup() as group:
            for worker in [one for one in self._running if one.is_serving]:
                group.create_task(ask(worker))
        return found

    async def _start(self) -> Worker:
        """Start a worker; it may end at any time. Raises `OSError`."""
        own, other = socket.socketpair()
        with other:
            listening, end = self._listener.fileno(), other.fileno()
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "assay", "serve", *self._arguments),
                    *("--worker-of", f"{listening},{end},{self._settings.ops_bind or ''}"),
                    pass_fds=(listening, end),
                    stdin=asyncio.subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C of a terminal would reach it twice
                )
            except OSError:
                own.close()
                raise
        is_ready = asyncio.Event()
        answers: dict[str, Answer] = {"count": counting(self._window)}
        worker = Worker(process, await Link.open(own, answers), is_ready)

        async def ready(_: object) -> None:
            worker.ready_s = self._clock.monotonic_s()
            is_ready.set()
            self._log.info("worker serves", pid=process.pid)

        async def last_metrics(page: str) -> None:
            self._metrics.note(process.pid, page)

        answers |= {"ready": ready, "last metrics": last_metrics}
        self._running.add(worker)
        self._group.create_task(self._attend(worker))
        if self._is_stopping.is_set():
            worker.stop(now=False)
        return worker

    async def _try_start(self) -> Worker | None:
        """Start a worker; return None if the system has no room for one now."""
        try:
            return await self._start()
        except OSError as error:
            self._log.error("a worker could not be started", error=str(error))
            return None

    async def _attend(self, worker: Worker) -> None:
        """Answer a worker until it has ended."""
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(worker))
                await worker.link.run()
                await worker.process.wait()
                watching.cancel()
        finally:
            self._running.discard(worker)
            self._metrics.end(worker.process.pid)

    async def _watch(self, worker: Worker) -> None:
        """Kill a worker that serves and whose event loop stands still: its callers would hang."""
        await worker.ready.wait()
        with suppress(LinkLost, ProcessLookupError):
            while True:
                try:
                    await worker.link.ask("alive", None, HUNG_S)
                except LinkSilent:
                    self._log.error("a worker hangs and is killed", pid=worker.process.pid)
                    worker.process.kill()
                    return
                await asyncio.sleep(WATCHED_EVERY_S)

    async def _keep(self, place: int) -> None:
        """Start a worker again whenever the place's has ended, until all stop."""
        pause_s = PAUSE_S
        while True:
            worker = self.state.serving[place]
            status = await worker.process.wait()
            if self._is_stopping.is_set():
                return
            if self.state.serving[place] is not worker:  # a rolling restart has replaced it
                continue
            self.state.died += 1
            is_steady = self._clock.monotonic_s() - worker.ready_s >= STEADY_S
            pause_s = PAUSE_S if is_steady else pause_s
            self._log.error(
                "a worker ended", pid=worker.process.pid, status=status, again_in_s=pause_s
            )
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)
            if self._is_stopping.is_set():
                return
            async with self._replacing:
                if self.state.serving[place] is worker:
                    self.state.serving[place] = await self._try_start() or worker

    async def _pause(self, pause_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._is_stopping.wait()

    async def _roll_forever(self) -> None:
        while True:
            await self._is_asked_to_roll.wait()
            self._is_asked_to_roll.clear()
            await self._roll()

    async def _roll(self) -> None:
        """Replace one worker after the other; each new one serves before the old one leaves."""
        for place in range(1, self._settings.workers + 1):
            if self._is_stopping.is_set():
                return
            async with self._replacing:
                new = await self._try_start()
                if new is None or not await new.settled():
                    if not self._is_stopping.is_set():
                        self._log.error(_ROLL_ENDED, status=new and new.process.returncode)
                    return
                old, self.state.serving[place] = self.state.serving[place], new
            if old.is_serving:
                old.link.say("leave")
            elif old.process.returncode is None:  # it takes no orders yet, and has no calls
                old.process.terminate()
            await old.process.wait()
            self.state.replaced += 1
        self._log.info("every worker was replaced", workers=self._settings.workers)


def require_free(settings: Settings) -> None:
    """Raise `OSError` if another program has a port that all workers share, or `ValueError`."""
    if settings.ext_authz_bind is None:
        return
    host, port = bind_address(settings.ext_authz_bind)
    if not port:
        raise ValueError("ASSAY_EXT_AUTHZ_BIND needs a port other than 0 with several workers")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise OSError(f"ASSAY_EXT_AUTHZ_BIND: {settings.ext_authz_bind}: {error}") from None
