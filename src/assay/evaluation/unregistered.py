"""Evaluates an agent that is in no registry: a registration file, card, server or site.

The same probes call the same services and are judged in the same way. What only a registry can tell
(whose the file is, which wallet acts for the agent, who controls the services) is left out: so a
threshold applies to the score before the ceiling of its rung.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assay.chains.model import Network
from assay.common.errors import InvalidRequest
from assay.common.json import JsonObject, is_array, is_object
from assay.control.scope import scope_of
from assay.evaluation.causes import Explainer
from assay.evaluation.explanations import Explanation
from assay.evaluation.model import EvidenceUnavailable, Grade, Score, SignalName, SignalResult
from assay.evaluation.scoring import ScoringPolicy, grade_score
from assay.evaluation.service import Evaluator
from assay.net.egress.redaction import name_problem, value_problem
from assay.probing.declared_services import declared_services
from assay.probing.deposited_access import EntryOutcome, EvaluationCredential, is_safe_way
from assay.registries.documents import RegistrationFiles
from assay.registries.model import FileProblem, OnchainAgent, RegistrationFile, Service, Subject
from assay.registries.registration import problems_of

OF_REGISTRIES: Final = frozenset({"registration_names_agent", "wallet_matches_chain"})
"""Probes that compare with the registry."""

OF_FILES: Final = frozenset({"registration_readable", "registration_complete"})
"""Probes of the registration file; a bare service address has none."""

_NOBODY: Final = "0x" + "0" * 40

OF_CONTROL: Final = frozenset({"control", "identity"})
"""Members of the evidence about control of services, and copies of agents."""

WEB: Final = "web"
"""The service name that says least about the protocol."""

_NAMES: Final = {"a2a": "A2A", "mcp": "MCP"}


@dataclass(frozen=True, slots=True)
class UnregisteredAgent:
    """The result for an agent without a registry."""

    services: Sequence[Service]
    problems: Sequence[FileProblem]
    collected: tuple[SignalResult, ...]
    score: Score
    grade: Grade
    why: Explanation

    @property
    def behaviour(self) -> SignalResult:
        """Return the evidence of the visit."""
        return self.collected[0]


@dataclass(frozen=True, slots=True)
class UnregisteredDependencies:
    """The dependencies of such an evaluation."""

    evaluator: Evaluator
    explainer: Explainer
    files: RegistrationFiles
    network: Network
    rules: ScoringPolicy


class UnregisteredAgents:
    """Evaluates what a URL or the text of a file describes; stores nothing."""

    def __init__(self, needs: UnregisteredDependencies) -> None:
        self._needs = needs

    async def evaluate(
        self,
        target: str,
        deadline_s: float,
        name: str | None = None,
        header: tuple[str, str] | None = None,
    ) -> UnregisteredAgent:
        """Evaluate `target`: an http(s) URL, or anything a token URI may be.

        `header` is a credential for its services, which then must be at one host. Raises
        `InvalidRequest` where it cannot be sent.

        A URL without a file is treated as the address of a service; its protocol is detected,
        beginning with the one of `name`. Raises `EvidenceUnavailable`.
        """
        agent, has_file = await self._agent(target, name)
        subject = Subject(self._needs.network, agent.agent_id, agent.owner, agent)
        wanted = frozenset({SignalName.SANDBOX})
        credentials = _given(subject, *header) if header else None
        collected, missing = await self._needs.evaluator.collect(
            subject, wanted, deadline_s, credentials=credentials
        )
        if not collected:
            raise EvidenceUnavailable("The services could not be visited now.", signals=["sandbox"])
        left_out = OF_REGISTRIES if has_file else OF_REGISTRIES | OF_FILES
        collected = tuple(self._without(one, left_out) for one in collected)
        found = grade_score(subject.agent_id, collected, missing, self._needs.rules, wanted)
        why = self._needs.explainer.explain(subject.agent_id, collected, found, wanted)
        grade = self._needs.rules.tiers.grade(found.value)
        services = agent.registration.services if agent.registration else ()
        if not has_file and name is None:
            services = _as_found(services, collected[0].evidence.data)
        return UnregisteredAgent(services, problems_of(agent), collected, found, grade, why)

    def _without(self, seen: SignalResult, left_out: frozenset[str]) -> SignalResult:
        probes = seen.evidence.data.get("probes")
        if not is_object(probes):
            return seen
        kept = {name: what for name, what in probes.items() if name not in left_out}
        data = {n: v for n, v in seen.evidence.data.items() if n not in OF_CONTROL}
        evidence = replace(seen.evidence, data={**data, "probes": kept})
        return self._needs.explainer.judged(replace(seen, evidence=evidence))

    async def _agent(self, target: str, name: str | None) -> tuple[OnchainAgent, bool]:
        """Return the agent that the target describes, and whether there is a file to judge."""
        is_url = target.lower().startswith(("https:", "http:"))
        file, why = (None, None) if name else await self._needs.files.read(target)
        has_file = file is not None or not is_url
        if not has_file:
            file, why = (
                RegistrationFile(name=target, services=(Service(name or WEB, target),)),
                None,
            )
        if file is not None:  # Only a registry can confirm which agent it names.
            file = replace(file, registrations=())
        agent = OnchainAgent(self._needs.network, "0", _NOBODY, None, target, file, why)
        return agent, has_file


@dataclass(frozen=True, slots=True)
class _Given:
    """A credential given for one evaluation; implements `EvaluationCredentials`."""

    credential: EvaluationCredential

    async def usable(self, subject: Subject) -> Sequence[EvaluationCredential]:
        """Return it for any subject."""
        del subject
        return (self.credential,)

    async def note(self, subject: Subject, outcomes: Mapping[str, EntryOutcome]) -> None:
        """Store nothing."""


def _given(subject: Subject, name: str, value: str) -> _Given:
    """Return the credential for the one host of all services. Raises `InvalidRequest`."""
    problem = name_problem("header", name) or value_problem("header", name, value)
    if problem is not None:
        raise InvalidRequest(f"The header {problem}.")
    scopes = [scope_of(v.service.endpoint) for v in declared_services(subject)[0]]
    hosts = {scope.host_scope for scope in scopes if scope is not None}
    if len(hosts) != 1 or None in scopes:
        raise InvalidRequest("A header is sent to one host, and the services have several.")
    host = hosts.pop()
    if not is_safe_way(host):
        raise InvalidRequest("A header is sent over https, or to this machine, and not in clear.")
    return _Given(EvaluationCredential("given", host, "header", name, value))


def _as_found(services: Sequence[Service], data: JsonObject) -> tuple[Service, ...]:
    """Return the services, named by the protocol that was found there."""
    rows = data.get("services")
    kinds = {
        str(row.get("endpoint")): _NAMES.get(str(row.get("kind")), WEB)
        for row in (rows if is_array(rows) else ())
        if is_object(row)
    }
    return tuple(replace(s, name=kinds.get(s.endpoint, s.name)) for s in services)
