"""Caches the registration files behind token URIs."""

from dataclasses import replace

from assay.common.cache import BoundedMap, Cache
from assay.common.clock import Clock
from assay.common.egress_budget import current_use
from assay.registries.file_problems import Problems
from assay.registries.model import OnchainAgent, RegistrationFile
from assay.registries.ports import (
    OVER_BUDGET,
    DocumentOverBudget,
    Documents,
    DocumentUnavailable,
)
from assay.registries.registration import NotRegistration, parse_registration
from assay.registries.token_uri import TemplateUri, read_token_uri

DOCUMENT_TTL_S = 300.0
UNREADABLE_TTL_S = 30.0
"""How long a registration file, or its absence, is cached."""

FILES_KEPT = 500
"""The same number of last read files is kept for when their host's egress budget is used up."""

URI_CHARS_MAX = 64 * 1024
"""Longest token URI that is followed; `data:` URIs contain whole files."""

Read = tuple[RegistrationFile | None, str | None]
"""The registration file, or a sentence that says why there is none."""


class RegistrationFiles:
    """Reads and caches the files that token URIs point at."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._files: Cache[Read] = Cache(clock, _ttl_s, FILES_KEPT, _weight)
        self._last_read: BoundedMap[str, RegistrationFile] = BoundedMap(
            FILES_KEPT, lambda f: f.weight
        )

    async def read(self, uri: str) -> Read:
        """Return the file, or why there is none; never raises."""
        if not uri.strip():
            return None, "The agent has no token URI."
        if len(uri) > URI_CHARS_MAX:
            return None, f"The token URI is longer than {URI_CHARS_MAX} characters."
        problems = Problems()
        try:
            source = read_token_uri(uri, problems.note)
            if isinstance(source, bytes):
                return _with(parse_registration(source), problems), None
        except (TemplateUri, NotRegistration) as error:
            return None, str(error)
        # It costs no request, and the whole file would be the cache key.
        if source[:5].lower() == "data:":
            file, why = await self._fetch(source)
        else:
            file, why = await self._cached(source)
        return (None if file is None else _with(file, problems)), why

    async def _cached(self, uri: str) -> Read:
        try:
            return await self._files.get(uri, lambda: self._fetch(uri), current_use().sharers)
        except DocumentOverBudget as error:  # Not cached: another use may have budget left.
            return self._last_read.get(uri), str(error) if uri not in self._last_read else None

    async def _fetch(self, uri: str) -> Read:
        try:
            document = await self._documents.fetch(uri)
            file = parse_registration(document.body, uri)
        except DocumentOverBudget:
            raise
        except (DocumentUnavailable, NotRegistration) as error:
            self._last_read.pop(uri)
            return None, str(error)
        if uri[:5].lower() != "data:":
            self._last_read.put(uri, file)
        return file, None


def _with(file: RegistrationFile, problems: Problems) -> RegistrationFile:
    """Add the URI's problems to those of its file."""
    recorded = problems.recorded
    return replace(file, problems=(*recorded, *file.problems)) if recorded else file


def agent_ttl_s(agent: OnchainAgent, ttl_s: float) -> float:
    """Return how long to cache an agent: not at all if a budget kept its file from being read.

    Another use may have budget left for it.
    """
    return 0.0 if agent.registration_problem == OVER_BUDGET else ttl_s


def _weight(read: Read) -> int:
    return 1 if read[0] is None else read[0].weight


def _ttl_s(read: Read) -> float:
    return UNREADABLE_TTL_S if read[0] is None else DOCUMENT_TTL_S
