"""Detects whether one HTTP request's content appears in another's answer.

Each plain HTTP request stands alone and is anonymous. So a word of ours in the query or in a token
must appear in no answer but its own: neither in the body nor in a header, in any spelling. All
answers of the visit are searched, including those to other probes.
Source: evidence.md#leaks.
"""

from random import Random
from urllib.parse import urlencode, urlsplit

from assay.common.sliced_work import Sliced
from assay.net.egress.ports import OutboundRequest
from assay.probing.answers import says_it_shares
from assay.probing.conversations import CONFIRMED_FROM
from assay.probing.function.words import leaves
from assay.probing.instructions import seeded, word
from assay.probing.malformed_requests import FORWARDED, provoked
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import ask, canary, first, unknown_url
from assay.probing.session import Exchange, VisitHttp, is_tight
from assay.probing.text_forms import find_word
from assay.probing.text_inputs import documented

ROUNDS, ROUNDS_MORE = 2, 4
"""Pairs of requests in an announced visit of one service; in all, after a first sighting."""

PARAMETER = "ref"
_SYLLABLES = 6


async def said_over_http(visit: ProbeSession) -> list[str]:
    """Return the words of ours sent in requests without a session; probes add to it."""
    return await visit.asked.get("said over http", _none)


async def _none() -> list[str]:
    return []


async def overheard(visit: ProbeSession) -> int:
    """Return how many answers revealed another request. Called once a visit."""
    return await visit.asked.get("overheard", lambda: _overheard(visit))


async def _overheard(visit: ProbeSession) -> int:
    service, http = first(visit, "http"), visit.http
    if service is None or not isinstance(http, VisitHttp):
        return 0
    if http.entry.entered([service.service.endpoint]):
        return 0  # A caller with a credential is known, and may see its own earlier requests.
    document = await documented(visit) or {}
    if says_it_shares("\n".join(leaves(document.get("info")))):
        return 0
    words, chance = await said_over_http(visit), seeded(visit.nonce or visit.seed, "overhearing")
    rounds, is_odd = 0 if is_tight(visit) else ROUNDS, chance.randrange(2)
    if visit.announced:  # A request of the probes of leaks, which contains a word as well.
        await provoked(visit)
        words.append(canary(visit, FORWARDED))
    try:
        found = await visit.slices.run(find_foreign(http.exchanges, words))
        for number in range(ROUNDS_MORE if visit.announced else 0):
            if found >= CONFIRMED_FROM or (number >= rounds and not found):
                break
            asks_unknown = (number + is_odd) % 2 == 1
            words += await _say(visit, service.service.endpoint, chance, asks_unknown=asks_unknown)
            found = await visit.slices.run(find_foreign(http.exchanges, words))
    except BudgetExhausted:
        pass  # Earlier answers count.
    return await visit.slices.run(find_foreign(http.exchanges, words))


async def _say(visit: ProbeSession, url: str, chance: Random, *, asks_unknown: bool) -> list[str]:
    """Send a request with words of ours, then one without, to the same or an unknown address."""
    words = [word(chance, _SYLLABLES) for _ in range(2)]
    parts = urlsplit(url)
    query = "&".join(filter(None, [parts.query, urlencode({PARAMETER: words[0]})]))
    said = parts._replace(query=query, fragment="").geturl()
    await ask(visit, OutboundRequest("GET", said, {"authorization": f"Bearer {words[1]}"}))
    then = unknown_url(visit, url) if asks_unknown else url
    await ask(visit, OutboundRequest("GET", then, VisitHttp.REPEAT))
    return words


def find_foreign(exchanges: list[Exchange], words: list[str]) -> Sliced[int]:
    """Return how many answers contain a word that their own request did not."""
    found = 0
    for one in [*exchanges]:
        foreign = [w for w in words if w not in one.sent.casefold()]
        if foreign and (yield from find_word(one.received, foreign)) is not None:
            found += 1
    return found
