"""Checks with three requests whether an agent is present and unchanged, if a visit has no room.

A re-check proves nothing and earns nothing. It confirms the evaluation before it, or requests a
scheduled visit. Source: evidence.md#reuse-of-evaluations.
"""

import asyncio
import random
from dataclasses import replace
from secrets import token_hex
from typing import Final

from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.visits import RECHECK
from assay.probing.declared_services import declared_services, service_row
from assay.probing.fingerprints import collect_fingerprints, evidence_of
from assay.probing.ports import BudgetExhausted, ProbeSession, VisitedService
from assay.probing.session import VisitHttp
from assay.probing.shared_dialers import SharedDialers
from assay.probing.visit_steps import wants_none
from assay.registries.subject import Subject

RECHECK_REQUESTS: Final = 3
"""Source: evidence.md#reuse-of-evaluations."""

REACHABLE: Final = "reachable"
"""The probe that checks whether services answer."""


async def recheck(subject: Subject, needs: SignalDependencies, left_s: float) -> Evidence:
    """Return what the requests show within `left_s`; inconclusive if the host had no room for them.

    Services are asked in random order, so that none can rely on being left out.
    """
    nonce = token_hex(16)
    http = VisitHttp(needs.http, needs.clock, RECHECK_REQUESTS, left_s)
    declared = declared_services(subject)[0]
    random.Random(nonce).shuffle(declared)  # noqa: S311 - the nonce is the secret
    rows: list[JsonValue] = []
    facts: JsonObject = {}
    async with asyncio.TaskGroup() as group:
        dialers = SharedDialers(needs.dialers, group, None)
        services = await _open(declared, http, needs)
        visit = ProbeSession(subject, services, http, dialers, "", nonce=nonce, slices=needs.slices)
        if services:
            facts = evidence_of(await collect_fingerprints(visit, services, left_s))
        for service in services:
            rows += await _answers(needs, replace(visit, services=(service,)))
        dialers.hang_up()
    if not rows:
        return Evidence({"status": "inconclusive", "why": EGRESS_BUDGET, "probes": {}})
    is_there = any(is_object(row) and row["answers"] for row in rows)
    data: JsonObject = {
        "status": "tested" if is_there else "inconclusive",
        "why": None if is_there else "unreachable",
        "services": [service_row(v, "visited") for v in services],
        "probes": {REACHABLE: {"services": rows}},
        "visit": {"label": "announced"},
        RECHECK: True,
    }
    return Evidence({**data, **facts} if is_there else data, interactions=http.sent)


async def _open(
    declared: list[VisitedService], http: VisitHttp, needs: SignalDependencies
) -> tuple[VisitedService, ...]:
    """Return the services that robots.txt allows, as far as it is known or can be read."""
    visits = needs.sources.visits
    found: list[VisitedService] = []
    for service in declared:
        known = None if visits is None else await visits.may_visit(service.service.endpoint)
        if known or (known is None and not await wants_none(service, http, visits)):
            found.append(service)
    return tuple(found)


async def _answers(needs: SignalDependencies, visit: ProbeSession) -> list[JsonValue]:
    """Return the row of one service; none if the requests were used up before it."""
    try:
        seen = await needs.probes[REACHABLE].collect(visit)
    except BudgetExhausted:
        return []
    rows = seen.get("services") if seen is not None else None
    return [*rows] if is_array(rows) else []
