"""Whether what went out in one HTTP request comes back in the answer to another.

Each request over plain HTTP stands alone: nobody who asks is known. So a word of ours in the query
or in a token has no business in any answer but its own: not in the body, and not in a header, in
no spelling. All answers of the visit are looked through, those to other probes included.
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
    """The words of ours that went out in requests without a session; to be added to."""
    return await visit.asked.get("said over http", _none)


async def _none() -> list[str]:
    return []


async def overheard(visit: ProbeSession) -> int:
    """How many answers told of another request. Asked once a visit."""
    return await visit.asked.get("overheard", lambda: _overheard(visit))


async def _overheard(visit: ProbeSession) -> int:
    service, http = first(visit, "http"), visit.http
    if service is None or not isinstance(http, VisitHttp):
        return 0
    if http.entry.entered([service.service.endpoint]):
        return 0  # who brings a credential is known, and may be told what it asked before
    document = await documented(visit) or {}
    if says_it_shares("\n".join(leaves(document.get("info")))):
        return 0
    words, chance = await said_over_http(visit), seeded(visit.nonce or visit.seed, "overhearing")
    rounds, is_odd = 0 if is_tight(visit) else ROUNDS, chance.randrange(2)
    if visit.announced:  # a request of the probes of leaks, which says a word as well
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
        pass  # what came back before counts
    return await visit.slices.run(find_foreign(http.exchanges, words))


async def _say(visit: ProbeSession, url: str, chance: Random, *, asks_unknown: bool) -> list[str]:
    """A request with words of ours, then one without: of the same address, or of none there is."""
    words = [word(chance, _SYLLABLES) for _ in range(2)]
    parts = urlsplit(url)
    query = "&".join(filter(None, [parts.query, urlencode({PARAMETER: words[0]})]))
    said = parts._replace(query=query, fragment="").geturl()
    await ask(visit, OutboundRequest("GET", said, {"authorization": f"Bearer {words[1]}"}))
    then = unknown_url(visit, url) if asks_unknown else url
    await ask(visit, OutboundRequest("GET", then, VisitHttp.REPEAT))
    return words


def find_foreign(exchanges: list[Exchange], words: list[str]) -> Sliced[int]:
    """How many answers hold a word that their own request did not."""
    found = 0
    for one in [*exchanges]:
        foreign = [w for w in words if w not in one.sent.casefold()]
        if foreign and (yield from find_word(one.received, foreign)) is not None:
            found += 1
    return found
