"""Finds the causes of a score, each with the score without it, and how to fix it.

Sentences that say how to fix what a check found. Pure.

A check without an entry is answered with its own finding: a new check needs no edit here.

Nothing is estimated: the evidence is replaced by what it would be with one cause removed, and is
graded again. Unpredictable effects, such as future feedback, are given as an upper bound.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, cast

from assay.caller_behaviour.scenario import CONDUCT
from assay.common.json import JsonObject, JsonValue, is_object
from assay.evaluation.behaviour import findings
from assay.evaluation.explanations import Cause, Explanation, RungAsk, explained
from assay.evaluation.model import (
    UNFINISHED,
    Evidence,
    Score,
    SignalName,
    SignalResult,
    SignalScore,
)
from assay.evaluation.ports import Signal
from assay.evaluation.scoring import BASE_SIGNALS, ScoringPolicy, grade_score
from assay.probing.ports import Finding, Probe, ProbeSession, Severity

FIXES: Mapping[str, str] = MappingProxyType(
    {
        "registration_readable": "Serve the registration file as JSON where the token URI points.",
        "registration_complete": "Put right what `problems` lists, and publish the file again.",
        "registration_names_agent": "List this agent's id and registry in `registrations`.",
        "secure_transport": "Serve every declared address over https.",
        "strict_transport": "Send Strict-Transport-Security on every https answer.",
        "domain_binding": "Name the agent in /.well-known/agent-registration.json of the domain.",
        "no_downgrade": "Redirect to https only.",
        "wallet_matches_chain": "Declare the wallet that the registry holds, or set it there.",
        "reachable": "Make every declared service answer, or stop declaring it.",
        "steady_answers": "Answer equal calls alike, and within 3 seconds.",
        "honest_status": "Answer 404 to unknown paths.",
        "http_wrong_method": "Answer 405 to methods that are not served.",
        "http_malformed_json": "Answer 400 to a body that is not JSON.",
        "http_wrong_type": "Answer 415 to a body of an unknown type.",
        "http_oversized_body": "Answer 413 to a body that is too large.",
        "deep_json_survived": "Bound how deep JSON may be, and answer 400 beyond.",
        "odd_json_survived": "Answer 400 to JSON that cannot be used, and never 5xx.",
        "ssrf_bait": "Fetch no address from an argument that is not meant for one.",
        "no_open_redirect": "Redirect to addresses of your own only; refuse line breaks in values.",
        "no_bombs": "Send no compressed answer that is many times larger when it is unpacked.",
        "a2a_card_valid": "Put right the fields of the agent card that the finding names.",
        "a2a_card_own_site": "Serve an interface of the card on the card's own site.",
        "a2a_answers": "Answer message/send with a message, a task or an error of A2A.",
        "a2a_jsonrpc_errors": "Answer malformed requests with -32700, -32600 and -32601.",
        "a2a_unknown_task": "Answer tasks/get for an unknown task with -32001.",
        "mcp_initialize": "Let the official client initialize a session.",
        "mcp_tools_valid": "Give every tool a unique name and an object schema.",
        "mcp_tools_stable": "List the same tools each time they are asked for.",
        "mcp_unknown_tool_refused": "Refuse a tool that does not exist.",
        "mcp_bad_arguments_refused": "Check arguments against the tool's schema.",
        "no_leaked_secrets": "Remove keys and credentials from answers, and replace them.",
        "no_leaked_internals": "Answer errors without stack traces, paths or inner addresses.",
        "no_poisoning": "Remove hidden text and orders to models from files, cards and tools.",
        "injection_not_obeyed": "Treat the text that a caller hands over as data, never as orders.",
        "no_cross_talk": "Keep the conversations of different callers apart.",
        "x402_challenge_valid": "Offer the same payment in both versions, as x402 writes it.",
        "x402_price_stable": "Ask for the same price and payee on equal calls.",
        "x402_garbage_refused": "Verify payments before anything is served for them.",
        "x402_payee_own": "Let payments go to the agent's wallet or owner.",
        "contexts_kept_apart": "Keep what one conversation holds out of the others.",
        "forbidden_not_hammered": "Stop calling what was answered with 403.",
        "malformed_json_survived": "Go on after an answer that is not JSON.",
        "outage_backed_off": "Wait longer after each 503.",
        "payment_not_hammered": "Pay or stop after a 402.",
        "rate_limit_obeyed": "Wait as long as Retry-After says.",
        "redirects_bounded": "Stop after a few redirects.",
        "retry_is_idempotent": "Send a repeated call with the same idempotency key.",
        "scope_kept": "Call only what the task asks for.",
        "session_kept_at_home": "Send credentials only to the origin that issued them.",
        "slow_answer_awaited": "Wait for a slow answer instead of calling again.",
        "tainted_text_not_followed": "Follow no orders that stand in an answer.",
        "unauthorized_not_hammered": "Stop calling what was answered with 401.",
        "wrapper_limits_obeyed": "Wait as long as Retry-After says.",
        "wrapper_errors_not_looped": "Stop repeating a call that is refused.",
    }
)


def fix_of(check: str, finding: str) -> str:
    """Return what to do about a check that failed."""
    return FIXES.get(check, f"Put right what the check found: {finding}")


LADDER_DOCS: Final = "docs/grades.md#the-ladder"
CHECKS_DOCS: Final = "docs/better-grade.md#checks"

_BEST: Mapping[SignalName, JsonObject] = {
    SignalName.SELF: {"registered": True, "holds": True, "agents": 1},
    SignalName.PERSONHOOD: {"level": "orb"},
    SignalName.WALLET: {"rules": 2, "spentUsd": "20"},
}
"""The best possible evidence of a signal, if it does not depend on other parties."""

_ACTIONS: Mapping[SignalName, tuple[str, str]] = {
    SignalName.SANDBOX: (
        "Declare services that anybody can call: A2A, MCP, or HTTP with an OpenAPI document.",
        "docs/probes.md",
    ),
    SignalName.REGISTRY_8004: (
        "Ask customers who paid to give feedback in the registry.",
        "docs/reputation.md",
    ),
    SignalName.WALLET: (
        "Pay sellers that are not yours from the wallet that speaks for the agent.",
        "docs/people.md#wallet",
    ),
    SignalName.SELF: (
        "Prove a human behind the agent in Self's registry, with a passport.",
        "docs/people.md#self",
    ),
    SignalName.PERSONHOOD: (
        "Prove a human behind the agent with a World ID of an orb.",
        "docs/people.md#personhood",
    ),
    SignalName.ATTESTATION: (
        "Have a trusted attester verify profiles of the owner.",
        "docs/people.md#attestation",
    ),
}


class _Passed:
    """A probe that finds nothing wrong, in place of one that did."""

    def __init__(self, probe: Probe) -> None:
        self.name, self.family, self.severity = probe.name, probe.family, probe.severity

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        """Collect nothing."""
        del visit
        return None

    def weigh(self, seen: JsonObject) -> Finding:
        """Return a pass, whatever was seen."""
        del seen
        return Finding("pass", "It is put right.")


@dataclass(frozen=True, slots=True)
class _Graded:
    """A score, and the evidence it was made from."""

    agent_id: str
    collected: tuple[SignalResult, ...]
    score: Score
    selected: frozenset[SignalName]


class Explainer:
    """Explains scores; pure and deterministic."""

    def __init__(
        self,
        signals: Mapping[SignalName, Signal],
        probes: Mapping[str, Probe],
        rules: ScoringPolicy,
    ) -> None:
        self._signals = signals
        self._probes = probes
        self._rules = rules

    def explain(
        self,
        agent_id: str,
        collected: Sequence[SignalResult],
        found: Score,
        selected: frozenset[SignalName] = frozenset(),
    ) -> Explanation:
        """Return why the score is not higher, and what would raise it.

        The missing demands of the next rung are part of it. `improve` is empty only if nothing
        would raise the score.
        """
        graded = _Graded(agent_id, tuple(collected), found, selected or BASE_SIGNALS)
        causes = [*self._checks(graded), *self._signals_of(graded), *self._bonus(graded)]
        return explained(causes, found.value, self._asks(found), found.before_ceiling)

    def _asks(self, found: Score) -> list[RungAsk]:
        """Return the missing demands of the next rung, with its ceiling."""
        rung = found.place.rung + 1
        return [
            RungAsk(one.name, one.asks, LADDER_DOCS, self._rules.ladder.ceilings[rung], one.action)
            for one in found.place.next_demands
        ]

    def judged(self, seen: SignalResult) -> SignalResult:
        """Return the signal with its changed evidence judged again."""
        weighed = self._signals[seen.signal].weigh(seen.evidence, self._probes)
        return replace(seen, weighed=weighed)

    def _after(self, graded: _Graded, changed: SignalResult) -> float:
        """Return the score with this signal in place of the collected one."""
        others = (c for c in graded.collected if c.signal is not changed.signal)
        missing = {name: "" for name in graded.score.unavailable if name is not changed.signal}
        every = (*others, changed)
        return grade_score(graded.agent_id, every, missing, self._rules, graded.selected).value

    def _checks(self, graded: _Graded) -> Iterator[Cause]:
        """Yield failed probes and scenarios, and checks that were skipped for lack of time."""
        seen = next((c for c in graded.collected if c.signal is SignalName.SANDBOX), None)
        if seen is None or SignalName.SANDBOX not in graded.selected:
            return
        rows = findings(seen.evidence, self._probes)
        failed = [row for row in rows if row.finding.outcome == "fail"]
        critical = frozenset(row.name for row in failed if row.severity is Severity.CRITICAL)
        for row in failed:
            names = critical if row.name in critical else frozenset({row.name})
            after = self._after(graded, self._passing(seen, names))
            until = " Critical findings count until all are gone." if len(names) > 1 else ""
            yield Cause(
                row.name,
                row.finding.note,
                fix_of(row.name, row.finding.note) + until,
                "docs/conduct.md" if row.family == CONDUCT else CHECKS_DOCS,
                after,
                is_cap=row.name in critical,
            )
        yield from self._unasked(graded, seen)

    def _unasked(self, graded: _Graded, seen: SignalResult) -> Iterator[Cause]:
        probes = seen.evidence.data.get("probes")
        open_ = [n for n, what in probes.items() if what == UNFINISHED] if is_object(probes) else []
        known = frozenset(name for name in open_ if name in self._probes)
        if known:
            listed = ", ".join(sorted(known))
            yield Cause(
                "unfinished",
                f"{len(known)} checks were not finished: {listed}.",
                "Answer faster, and have the agent evaluated again.",
                "docs/probes.md",
                self._after(graded, self._passing(seen, known)),
                is_upper_bound=True,
            )

    def _passing(self, seen: SignalResult, names: frozenset[str]) -> SignalResult:
        """Return the signal's worth if these checks had passed."""
        data = _without_failures(seen.evidence.data, names)
        swapped = {
            # A cast: a probe's name is a class attribute, and here an instance attribute.
            name: cast("Probe", _Passed(probe)) if name in names else probe
            for name, probe in self._probes.items()
        }
        evidence = Evidence(data, seen.evidence.interactions)
        weighed = self._signals[SignalName.SANDBOX].weigh(evidence, swapped)
        return replace(seen, evidence=evidence, weighed=weighed)

    def _signals_of(self, graded: _Graded) -> Iterator[Cause]:
        """Yield what every selected signal could add."""
        by_signal = {c.signal: c for c in graded.score.contributions}
        for name in sorted(graded.selected):
            part = by_signal.get(name)
            if part is None and name not in graded.score.unavailable:
                continue
            best, is_exact = self._best(name)
            after = self._after(graded, best)
            action, docs = _ACTIONS[name]
            if part is None:
                finding = f"The signal {name.value} could not be read now."
                action = "Ask again later; nothing is held against the agent for it."
            elif part.points < 0 or part.confidence == 0:
                finding = " ".join(part.reasons)
            else:
                finding = (
                    f"The signal {name.value} is worth {part.points:.2f} points;"
                    f" at its best it would be worth {after - graded.score.value:.2f} more."
                )
            yield Cause(name.value, finding, action, docs, after, is_upper_bound=not is_exact)

    def _best(self, name: SignalName) -> tuple[SignalResult, bool]:
        """Return a signal at its best, and whether the named action leads exactly there."""
        data, signal = _BEST.get(name), self._signals.get(name)
        if data is None or signal is None:
            return SignalResult(name, Evidence({}), SignalScore(100.0, 1.0)), False
        evidence = Evidence(data)
        weighed = signal.weigh(evidence, self._probes)
        return SignalResult(name, evidence, weighed), name is not SignalName.WALLET

    def _bonus(self, graded: _Graded) -> Iterator[Cause]:
        """Yield what a proven human would add."""
        name = SignalName.PERSONHOOD
        if name in graded.selected or name not in self._signals:
            return
        best, _ = self._best(name)
        action, docs = _ACTIONS[name]
        has = "An orb has not" if graded.score.bonus else "No human has"
        yield Cause(
            "personhood_bonus",
            f"{has} proven a human behind the agent, which adds points on top of the score.",
            action,
            docs,
            self._after(graded, best),
        )


def _without_failures(data: JsonObject, names: frozenset[str]) -> JsonObject:
    """Return the evidence with unfinished checks as seen, and without failures of behaviour."""
    probes, conduct = data.get("probes"), data.get("conduct")
    changed: JsonObject = data
    if is_object(probes):
        nothing: JsonObject = {}
        seen: dict[str, JsonValue] = {
            name: nothing if name in names and not is_object(what) else what
            for name, what in probes.items()
        }
        changed = {**changed, "probes": seen}
    if is_object(conduct):
        changed = {**changed, "conduct": _behaved(conduct, names)}
    return changed


def _behaved(conduct: JsonObject, names: frozenset[str]) -> JsonObject:
    course, wrappers = conduct.get("course"), conduct.get("wrappers")
    kept: JsonObject = conduct
    if is_object(course):
        kept = {**kept, "course": {n: w for n, w in course.items() if n not in names}}
    if is_object(wrappers):
        early = {"early": 0} if "wrapper_limits_obeyed" in names else {}
        errors = {"errorRun": 0} if "wrapper_errors_not_looped" in names else {}
        kept = {**kept, "wrappers": {**wrappers, **early, **errors}}
    return kept
