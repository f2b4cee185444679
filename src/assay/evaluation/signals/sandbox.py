"""How an agent behaves when its declared services are called: one visit.

Checks with three requests whether an agent is present and unchanged, if a visit has no room.

A re-check proves nothing and earns nothing. It confirms the evaluation before it, or requests a
scheduled visit. Source: evidence.md#reuse-of-evaluations.

All requests of a visit share one budget and one deadline. `behaviour` judges what it saw. Source:
conventions.md#behavioural-evidence.
"""

import asyncio
import hashlib
import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import ClassVar, Final

from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.control.identity import Control
from assay.control.ports import ControlledEndpoint
from assay.evaluation.behaviour import betrayed, ceiling_data, status_of, weigh
from assay.evaluation.checks import judged_conduct
from assay.evaluation.model import Evidence, SignalName, SignalScore, SignalUnavailable
from assay.evaluation.ports import Signal, SignalDependencies, Sources, conduct_of
from assay.evaluation.visits import RECHECK
from assay.net.egress.request_slots import BLAMED_FROM_S, OwnWaits, count_own_waits
from assay.probing.declared_services import as_spoken, declared_services, service_row
from assay.probing.deposited_access import CLOSED, NOT_ENTERED, CredentialEntry
from assay.probing.findings import finding_rows
from assay.probing.fingerprints import collect_fingerprints, evidence_of
from assay.probing.function.service import collect_function, function_rows
from assay.probing.judge import TextJudge
from assay.probing.ports import BudgetExhausted, Probe, ProbeSession, VisitedService
from assay.probing.session import VisitHttp
from assay.probing.shared_dialers import HANG_UP_S, FunctionDialers, SharedDialers
from assay.probing.unannounced import Manner, commitment, some_unannounced
from assay.probing.visit_steps import (
    UNFINISHED,
    RoundResult,
    VisitReader,
    allowed,
    closed_to,
    deposited_for,
    entered_row,
    run_probes,
    wants_none,
    without_entry,
)
from assay.registries.model import Subject
from assay.registries.ports import OVER_BUDGET

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


REQUESTS_MAX = 60
"""Requests one evaluation may cost an agent. Source: checks.md#rules-of-a-visit."""

FUNCTION_ALONE = 0.4
"""Part of a visit's time in which only function is tested, unless its proof ends earlier."""


class Sandbox:
    """Runs every probe within one budget and one deadline."""

    name: ClassVar[SignalName] = SignalName.SANDBOX

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        conduct = await conduct_of(subject, needs.sources)
        if subject.agent is None:
            seen_any = bool(judged_conduct(conduct))
            status, why = ("tested", None) if seen_any else ("inconclusive", "no_conduct")
            return Evidence({"status": status, "why": why, "conduct": conduct})
        ends_s = max(0.1, needs.deadline_s - HANG_UP_S)
        urls = [visited.service.endpoint for visited in declared_services(subject)[0]]
        plan = needs.sources.visits and await needs.sources.visits.plan(subject, urls)
        way = plan.http if plan else needs.http
        pause_s = plan.pause_s if plan else None
        entry = await _entry(subject, needs.sources, is_carried=plan is None)
        http = VisitHttp(way, needs.clock, REQUESTS_MAX, ends_s, pause_s=pause_s, entry=entry)
        turns, visit_s = needs.turns, needs.deadline_s
        least = RECHECK_REQUESTS if needs.may_recheck else 0
        turn = turns.turn(urls, visit_s, least=least) if turns else nullcontext("whole")
        with count_own_waits(is_visit=True) as waits:
            async with turn as begins:
                if begins == "whole":
                    seen = await self._visit(_Going(subject, needs, plan), http, waits, conduct)
                    if needs.sources.credentials is not None:
                        await needs.sources.credentials.note(subject, entry.outcomes)
                    return seen
                # Its hosts are being visited, and have no room for another visit.
                found = Evidence({"status": "inconclusive", "why": EGRESS_BUDGET, "probes": {}})
                if begins == "least":
                    found = await recheck(subject, needs, http.left_s)
        return replace(found, data={**found.data, "conduct": conduct}) if conduct else found

    async def _visit(
        self, going: "_Going", http: VisitHttp, waits: OwnWaits, conduct: JsonObject
    ) -> Evidence:
        subject, needs, plan = going.subject, going.needs, going.plan
        declared, ignored = declared_services(subject)
        nonce = token_hex(16)
        if needs.sources.visits is not None:
            await needs.sources.visits.begin(subject, nonce)
        async with asyncio.TaskGroup() as group:
            may_send, issue = needs.sources.talking(subject.key, announced=plan is None)
            dialers = SharedDialers(plan.dialers if plan else needs.dialers, group, may_send, issue)
            visited, refused = await allowed(
                declared, http, needs.sources.visits, announced=plan is None
            )
            agreed = await _agreed(visited, http, going)
            asked = http.replied
            visit = _begun(going, visited, http, dialers, nonce, agreed)
            answers = await _ask_all(visit, needs, http.left_s, group)
            dialers.hang_up()
        seen = answers.seen
        status, why = _status(answers, refused, replied=http.replied > asked)
        if _is_cut(subject, http, waits, seen) and not betrayed(seen, needs.probes):
            # A partial visit is no evidence: a rival that uses up the budget must not choose it.
            status, why, seen = "inconclusive", EGRESS_BUDGET, {}
        data: JsonObject = {
            "status": status,
            "why": why,
            "services": _listed(declared, answers, refused),
            "ignored": ignored,
            "probes": seen,
            **ceiling_data(subject, seen, needs.probes),
            "function": function_rows(answers.transcripts),
            "visit": _row(plan, answers.closed),
            **answers.controlled,
            "findings": finding_rows(seen, needs.probes),
            **entered_row(http, declared),
        }
        if status == "tested":
            data = {**data, **evidence_of(answers.facts)}
        if conduct:
            data = {**data, "conduct": conduct}
            if judged_conduct(conduct) and status != "tested" and why != EGRESS_BUDGET:
                data = {**data, "status": "tested", "why": None}
        transcript: JsonObject = {
            "seed": nonce,
            "commitment": commitment(nonce),
            "function": [*answers.transcripts],
            "calls": http.calls.as_json(),
        }
        return Evidence(data, interactions=http.sent, transcript=transcript)

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        return weigh(evidence, probes)


@dataclass(frozen=True, slots=True)
class _Going:
    """A visit that begins: its target, dependencies and manner; without a plan announced."""

    subject: Subject
    needs: SignalDependencies
    plan: Manner | None


async def _entry(subject: Subject, sources: Sources, *, is_carried: bool) -> CredentialEntry:
    """Return the deposited credentials of a visit; an unannounced one carries none."""
    if sources.credentials is None:
        return CredentialEntry()
    return CredentialEntry(await sources.credentials.usable(subject), is_carried=is_carried)


def _status(
    answers: "_VisitAnswers", refused: tuple[VisitedService, ...], *, replied: bool
) -> tuple[str, str | None]:
    """Return whether there was behaviour to judge, and why not."""
    if answers.closed and not answers.services:
        return "inconclusive", NOT_ENTERED
    return status_of(answers.services, refused, answers.seen, replied=replied)


def _listed(
    declared: Sequence[VisitedService], answers: "_VisitAnswers", refused: Sequence[VisitedService]
) -> list[JsonValue]:
    """Return the services, with what was done with each."""
    closed = [v for v in declared if v.service.endpoint in answers.closed]
    by_state = {"visited": answers.services, "opted_out": refused, CLOSED: closed}
    return [service_row(v, state) for state, listed in by_state.items() for v in listed]


def _row(plan: Manner | None, closed: Sequence[str]) -> JsonObject:
    """Return the visit's row. One that could not enter a service does not count as unannounced."""
    if plan is None:
        return {"label": "announced"}
    return {**plan.row, "label": "unlabelled"} if closed else plan.row


def _begun(
    going: _Going,
    visited: tuple[VisitedService, ...],
    http: VisitHttp,
    dialers: SharedDialers,
    nonce: str,
    agreed: frozenset[str] | None,
) -> ProbeSession:
    lures = None if going.plan else going.needs.sources.lures
    return ProbeSession(
        going.subject,
        visited,
        http,
        dialers,
        _seed(going.subject),
        None if lures is None else lures.new(going.subject.key),
        agreed,
        nonce=nonce,
        ends_at=asyncio.get_running_loop().time() + http.left_s,
        announced=going.plan is None,
        prompts=going.plan.prompts if going.plan else (),
        slices=going.needs.slices,
        judge=TextJudge(model) if (model := going.needs.sources.judge) else None,
        sales=going.needs.sources.sales,
    )


async def _controlled(
    visit: ProbeSession, kinds: Mapping[str, str], control: Control | None, left_s: float
) -> dict[str, JsonValue]:
    """Return the members `control` and `identity` of the evidence.

    A customer does not ask hosts for that: an unannounced visit uses what announced ones found.
    `kinds` are the kinds known so far, by endpoint; of pages only declared ones are asked.
    """
    if control is None or not visit.announced:
        return {}
    endpoints = [
        ControlledEndpoint(v.service.endpoint, kinds.get(v.service.endpoint, v.kind))
        for v in visit.services
        if v.is_known or visit.spoken.get(v.service.endpoint) != "page"
    ]
    reader = VisitReader(visit)
    try:
        return await control.collect(visit.subject, endpoints, reader, reader, left_s)
    except Exception:  # noqa: BLE001 - an answer nobody thought of must not take the visit down
        return {}


def _is_cut(subject: Subject, http: VisitHttp, waits: OwnWaits, seen: RoundResult) -> bool:
    """Return whether a budget, or waiting for this service, cut the visit short."""
    if http.over_budget or (
        subject.agent is not None and subject.agent.registration_problem == OVER_BUDGET
    ):
        return True
    is_late = UNFINISHED in seen.values() and http.sent < REQUESTS_MAX
    return is_late and waits.waited_s >= BLAMED_FROM_S


async def _agreed(
    visited: Sequence[VisitedService], http: VisitHttp, going: _Going
) -> frozenset[str] | None:
    """Return the origins that consent to more requests; an unannounced visit sends no more."""
    consents = going.needs.consents
    if consents is None or going.plan is not None:
        return None if consents is None else frozenset()
    return await consents.read(going.subject, [v.service.endpoint for v in visited], http)


@dataclass(frozen=True, slots=True)
class _VisitAnswers:
    """The result of a visit: its services as found, and the evidence of them."""

    services: tuple[VisitedService, ...]
    transcripts: Sequence[JsonObject]
    """Transcripts of proofs of function."""
    seen: RoundResult
    controlled: dict[str, JsonValue]
    facts: JsonObject
    closed: Sequence[str] = ()
    """Services for which this visit had no credential although one was deposited."""


async def _ask_all(
    visit: ProbeSession, needs: SignalDependencies, deadline_s: float, group: asyncio.TaskGroup
) -> _VisitAnswers:
    """Make all requests to an agent, the most important first.

    Function comes first: its requests must not depend on what the probes leave over, and it finds
    out which protocol is spoken where. A slow agent's proof continues beside them.
    """
    ends_at = asyncio.get_running_loop().time() + deadline_s
    probes = needs.probes
    if not visit.announced:
        probes = some_unannounced(probes, visit.nonce)
    dialers = visit.dialers
    shares = FunctionDialers(dialers) if isinstance(dialers, SharedDialers) else dialers
    proof = group.create_task(collect_function(replace(visit, dialers=shares)))
    await asyncio.wait([proof], timeout=deadline_s * FUNCTION_ALONE)
    deposited = frozenset[str]() if visit.announced else deposited_for(visit)
    closed = closed_to(visit, await proof, deposited) if deposited else ()
    left_s = max(0.0, ends_at - asyncio.get_running_loop().time())
    spoken = as_spoken(visit.services, visit.spoken)
    services = tuple(v for v in spoken if v.service.endpoint not in closed)
    probed = replace(visit, services=services)
    kinds = {v.service.endpoint: v.kind for v in services}
    control = group.create_task(_controlled(visit, kinds, needs.control, left_s))
    # With the credential more may be listed, so such visits cannot be compared.
    facts = group.create_task(collect_fingerprints(visit, spoken, left_s, but_of=deposited))
    seen = await run_probes(probed, probes, left_s) if services or not closed else {}
    transcripts = [without_entry(t, closed) for t in await proof]
    return _VisitAnswers(services, transcripts, seen, await control, await facts, closed)


def _seed(subject: Subject) -> str:
    return hashlib.sha256(subject.key.encode()).hexdigest()[:32]


SIGNAL: Final[Signal] = Sandbox()
