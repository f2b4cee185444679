"""Whether answers give away secrets, internals or what other callers said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.common.json import JsonObject, JsonValue, is_array
from assay.probing.conversations import (
    CONFIRMED_FROM,
    ENVIRONMENT,
    REPEATS_MAX,
    REPOSITORY,
    LabelledReply,
    Talk,
    a2a_talk,
    provoked,
    public_pages,
    unanswered_kinds,
)
from assay.probing.crossed_answers import mixed_by_takers, overheard, repeated_by_takers
from assay.probing.ports import Finding, ProbeSession, Severity, probe
from assay.probing.probe_client import host_of
from assay.probing.secret_formats import (
    environment_lines,
    find_internals,
    find_secrets,
    find_settings,
)
from assay.probing.text_tools import handed, mistaken, secrets_disclosed
from assay.probing.wrong_values import neighbours_disclosed, wrongly_asked

ENVIRONMENT_FILE = "environment file"

HIDDEN = "[redacted]"

CUSTOMERS = "records of other people"

SETTINGS = "the process's settings"

SAID = "a message"

BRIEFING = "confided texts"

ENVIRONMENT_LINES = 2
"""Least lines that make an answer to `/.env` an environment file."""


def _weigh_no_leaked_secrets(seen: JsonObject) -> Finding:
    leaked, sightings = seen["leaked"], seen.get("sightings", CONFIRMED_FROM)
    if is_array(leaked) and leaked:
        listed = ", ".join(str(kind) for kind in leaked)
        if isinstance(sightings, int) and sightings < CONFIRMED_FROM:
            return Finding("not_tested", f"An answer gave away secrets once: {listed}.")
        return Finding("fail", f"Answers give away secrets: {listed}.")
    if seen.get("unanswered"):
        return Finding("not_tested", "Requests that show how it fails were not answered.")
    return Finding("pass", "Answers give away no secrets.")


@probe("no_leaked_secrets", "error discipline", Severity.CRITICAL, weigh=_weigh_no_leaked_secrets)
async def no_leaked_secrets(visit: ProbeSession) -> JsonObject | None:
    """Requires that no answer has a private key, an API key, credentials or an environment file.

    It checks answers to malformed requests, results of tools, and what the agent said in
    conversations, including its own rules and keys. The evidence has the kind of secret and its
    prefix, never the secret.

    Source: evidence.md#leaks; OWASP ASVS 16.5.1.
    """
    talk = await a2a_talk(visit)
    asked = [*await provoked(visit), *await mistaken(visit), *(await handed(visit)).results]
    asked += await wrongly_asked(visit)
    missing: list[JsonValue] = [*await unanswered_kinds(visit)]
    if not asked and not (talk and talk.texts) and not missing:
        return None
    seen = _Seen(visit)
    await seen.read_answers(asked)
    if talk is not None:
        await seen.read_talk(talk)
    confided = await secrets_disclosed(visit)
    seen.note(len(confided), {BRIEFING: min(confided, default="")}, SAID)
    disclosed = await neighbours_disclosed(visit)
    seen.note(disclosed, {CUSTOMERS: HIDDEN}, "a call with the number next to a documented one")
    if not seen.leaks:
        return {"leaked": [], **({"unanswered": missing} if missing else {})}
    return {
        "leaked": sorted(seen.leaks),
        "sightings": max(seen.sightings),
        "shown": seen.leaks,
    }


@dataclass(frozen=True, slots=True)
class _Given:
    """What an answer revealed: kinds, and the secrets themselves, which are not stored."""

    kinds: Mapping[str, str]
    secrets: frozenset[str]


class _Seen:
    """What answers revealed, and how often."""

    def __init__(self, visit: ProbeSession) -> None:
        self._visit = visit
        self.leaks: dict[str, JsonValue] = {}
        self.sightings: list[int] = []

    def note(self, sightings: int, kinds: Mapping[str, str], request: str) -> None:
        """Record kinds that were seen this often."""
        if sightings:
            self.sightings.append(sightings)
            new: dict[str, JsonValue] = {kind: [request, shown] for kind, shown in kinds.items()}
            self.leaks = {**new, **self.leaks}

    async def read_answers(self, asked: Sequence[LabelledReply]) -> None:
        """Check answers that can be requested again."""
        known: set[str] = set()
        for one in asked:
            given = await _given(self._visit, one.request, one.text)
            if given.secrets & known:
                self.note(CONFIRMED_FROM, given.kinds, one.request)
            elif given.kinds.keys() - self.leaks.keys():
                self.note(await _sightings(self._visit, one, given), given.kinds, one.request)
            known |= given.secrets

    async def read_talk(self, talk: Talk) -> None:
        """Check what an agent said."""
        found = [(await _given(self._visit, "", text)).kinds for text in talk.texts]
        found = [kinds for kinds in found if kinds]
        self.note(len(found), found[0] if found else {}, SAID)
        given = talk.briefings
        self.note(len(given), {BRIEFING: min(given, default="")}, SAID)


async def _sightings(visit: ProbeSession, one: LabelledReply, given: _Given) -> int:
    """Return how often a repeated request reveals the same; some fail only occasionally.

    Zero if it reveals another one of the kind each time: then it generates them.
    """
    is_other = False
    for _ in range(REPEATS_MAX):
        again = await _given(visit, one.request, await one.again())
        if again.secrets & given.secrets:
            return CONFIRMED_FROM
        is_other = is_other or bool(again.kinds.keys() & given.kinds.keys())
    return 0 if is_other else 1


async def _given(visit: ProbeSession, request: str, text: str) -> _Given:
    secrets: set[str] = set()
    found = await visit.slices.run(find_secrets([text]))
    if found:  # The public pages are fetched only if there is something to compare.
        found = await visit.slices.run(find_secrets([text], await public_pages(visit), secrets))
    if request == ENVIRONMENT and len(list(environment_lines(text))) >= ENVIRONMENT_LINES:
        found, secrets = {**found, ENVIRONMENT_FILE: HIDDEN}, {*secrets, ENVIRONMENT_FILE}
    elif await visit.slices.run(find_settings(text)) and await visit.slices.run(
        find_settings(text, await public_pages(visit))
    ):
        found, secrets = {**found, SETTINGS: HIDDEN}, {*secrets, SETTINGS}
    return _Given(found, frozenset(secrets))


REPOSITORY_SIGN = "repositoryformatversion"
"""Every Git configuration contains it. Source: git, "gitrepository-layout"."""


def _weigh_no_leaked_internals(seen: JsonObject) -> Finding:
    leaked = seen["leaked"]
    if is_array(leaked) and leaked:
        listed = ", ".join(str(kind) for kind in leaked)
        return Finding("fail", f"Error messages give away internals: {listed}.")
    return Finding("pass", "Error messages give away no internals.")


@probe("no_leaked_internals", "error discipline", Severity.MAJOR, weigh=_weigh_no_leaked_internals)
async def no_leaked_internals(visit: ProbeSession) -> JsonObject | None:
    """Requires that answers to bad requests have no stack trace, file path or internal address.

    It is separate from `no_leaked_secrets`, because popular frameworks do this in development mode:
    a fault, but not a breach. Content that the service's own public pages show is not a leak: a
    page of documentation may answer every address.

    Source: checks.md#error-bodies; CWE-209.
    """
    asked = [*await provoked(visit), *await mistaken(visit), *await wrongly_asked(visit)]
    if not asked:
        return None
    own = [host_of(v.service.endpoint) for v in visit.services]
    leaked = set(await visit.slices.run(find_internals((one.text for one in asked), own)))
    if leaked:
        leaked -= await visit.slices.run(find_internals(await public_pages(visit), own))
    if any(one.request == REPOSITORY and REPOSITORY_SIGN in one.text for one in asked):
        leaked.add("source repository")
    return {"leaked": sorted(leaked)}


def _weigh_no_cross_talk(seen: JsonObject) -> Finding:
    sightings = seen.get("sightings", CONFIRMED_FROM)
    if seen["repeated"]:
        if isinstance(sightings, int) and sightings < CONFIRMED_FROM:
            return Finding("not_tested", "Another caller's words were repeated once, not again.")
        return Finding("fail", "What one caller said is repeated to another.")
    if seen.get("unanswered") or seen.get("answered") is False:
        return Finding("not_tested", "The questions were not answered.")
    return Finding("pass", "What one caller said is not repeated to another.")


@probe("no_cross_talk", "injection", Severity.CRITICAL, weigh=_weigh_no_cross_talk)
async def no_cross_talk(visit: ProbeSession) -> JsonObject | None:
    """Requires that a word from one conversation or request appears in no other, in any encoding.

    A service that says that it shares its inputs (a guest book, a notice board) is not tested.

    Source: checks.md#injection-and-leaks (canary).
    """
    talk = await a2a_talk(visit)
    response = [await repeated_by_takers(visit), await mixed_by_takers(visit)]
    response += [await overheard(visit), talk.repeated if talk else 0]
    if any(response):
        return {"repeated": True, "sightings": sum(response)}
    if talk is None:
        return None
    if not talk.asked_unrelated:
        return {"repeated": False, "unanswered": ["a2a"]}
    return {"repeated": False}
