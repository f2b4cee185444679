"""Runs the probes of one visit in two rounds: first the possibly critical ones."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Final

from assay.common.json import JsonObject
from assay.probing.call_tally import odd_requests
from assay.probing.ports import Probe, ProbeSession, Severity
from assay.probing.unannounced import ANNOUNCED_ONLY

AT_ONCE: Final = 6
"""Concurrent probes: a visit must not look like a flood."""

CRITICAL_ALONE: Final = 0.5
"""Part of the probes' time in which only critical ones run, unless they end earlier."""

UNFINISHED: Final = "unfinished"

RoundResult = dict[str, JsonObject | str | None]
"""By probe: what it saw, None if it does not apply, or `UNFINISHED`."""

_LIGHTEST_LAST: Final = (Severity.CRITICAL, Severity.MAJOR, Severity.MINOR, Severity.INFO)


async def run_probes(
    visit: ProbeSession, probes: Mapping[str, Probe], deadline_s: float
) -> RoundResult:
    """Return what every probe saw within `deadline_s` and the visit's requests. Never raises.

    Requests of critical checks must not depend on what the others leave over. In an unannounced
    visit the probes run one after the other, in the given order.
    """
    ends_at = asyncio.get_running_loop().time() + deadline_s
    turns = asyncio.Semaphore(AT_ONCE if visit.announced else 1)
    ordered = sorted(probes.items(), key=_turn) if visit.announced else list(probes.items())
    async with asyncio.TaskGroup() as group:

        def begin(
            named: Iterable[tuple[str, Probe]],
        ) -> dict[str, asyncio.Task[JsonObject | str | None]]:
            return {n: group.create_task(_probe(n, p, visit, turns, ends_at)) for n, p in named}

        tasks = begin((n, p) for n, p in ordered if visit.announced and _goes_first(n, p))
        if tasks:
            await asyncio.wait(tasks.values(), timeout=deadline_s * CRITICAL_ALONE)
        tasks |= begin((n, p) for n, p in ordered if n not in tasks)
    return {name: task.result() for name, task in sorted(tasks.items())}


def _goes_first(name: str, probe: Probe) -> bool:
    """Return whether it decides if there is anything to judge, or can be critical."""
    return name == "reachable" or probe.severity is Severity.CRITICAL


def _turn(named: tuple[str, Probe]) -> tuple[bool, int, str]:
    name, probe = named
    return name != "reachable", _LIGHTEST_LAST.index(probe.severity), name


async def _probe(
    name: str, probe: Probe, visit: ProbeSession, turns: asyncio.Semaphore, ends_at: float
) -> JsonObject | str | None:
    manner = odd_requests() if name in ANNOUNCED_ONLY else nullcontext()
    try:
        async with asyncio.timeout_at(ends_at), turns:
            with manner:
                return await probe.collect(visit)
    except Exception:  # noqa: BLE001 - time, budget, or an answer nobody thought of: one hostile
        # service must not take the whole evaluation down; what did not finish is reported.
        return UNFINISHED
