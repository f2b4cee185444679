"""Patterns of leaked internals. Pure.

Precision before recall: an honest agent that is accused loses its grade, a dishonest one meets
several probes. So it contains only patterns that ordinary error messages do not match. Every
quantifier is bounded, because the text is hostile. So is the work: a text is read in windows of
fixed size, and the computations yield after every few thousand characters (`common.sliced_work`).
Source: checks.md#error-bodies.
"""

import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address

from assay.common.sliced_work import Meter, Sliced, occurs, whole

ERROR_MAX = 65_536
"""Characters read of one error message."""

TEXTS_MAX = 10_000
"""Error messages read of one agent: a visit makes far fewer requests."""

_TEXT_COSTS = 64
"""The cost of a message besides its characters, counted as characters: it may have none."""

_ERROR_REACH = 768
"""Longest match that is found beyond a window. A longer file path is not recognised."""

_INTERNALS = {
    "stack trace": re.compile(
        r"Traceback \(most recent call last\)|^\s{0,8}File \"[^\"\n]{1,300}\", line \d{1,7}"
        r"|\bat [\w.$<>\[\] ]{1,120} ?\((?:file://|node:|/|[A-Z]:\\)[^\s()]{1,300}:\d{1,7}:\d{1,7}\)"
        r"|\bat [\w.$<>]{1,160}\([\w$]{1,80}\.(?:java|kt|scala):\d{1,7}\)"
        r"|\bgoroutine \d{1,9} \[running\]|\bthread '[^'\n]{1,80}' panicked at"
        r"|\bin /[^\s]{1,200}\.php(?: on line |:)\d{1,7}",
        re.MULTILINE,
    ),
    "file path": re.compile(
        r"(?<![\w.:/])/(?:home|root|usr|var|opt|srv|app|Users|tmp)(?:/[\w.@+-]{1,80}){1,20}"
        r"\.(?:py|js|mjs|cjs|ts|rb|php|go|rs|java|env|pem|key|sqlite3?)\b"
        r"|\b[A-Z]:\\(?:[\w .@-]{1,80}\\){1,20}[\w.-]{1,80}"
    ),
}
_IPV4 = re.compile(r"(?<![\w.-])(?<!\w/)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|-\d)")
_INTERNAL_HOST = re.compile(
    r"(?<![\w-])[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,4}\.(?:svc\.cluster\.local|internal|intranet)\b"
)
_FOUND_MAX = 50
"""Addresses and names of one text that are examined."""


def leaked_internals(text: str, own_hosts: Iterable[str]) -> frozenset[str]:
    """Return the kinds of internal detail in a text, except the agent's own public hosts."""
    return whole(find_internals([text], own_hosts))


def find_internals(texts: Iterable[str], own_hosts: Iterable[str]) -> Sliced[frozenset[str]]:
    """Return the kinds of internal detail in error messages, except the agent's public hosts."""
    own = frozenset(own_hosts)
    found: set[str] = set()
    meter = Meter()
    for _, text in zip(range(TEXTS_MAX), texts, strict=False):
        if meter.spend(_TEXT_COSTS):
            yield
        cut = text[:ERROR_MAX]
        for kind, pattern in _INTERNALS.items():
            if (yield from occurs(pattern, cut, meter, _ERROR_REACH)):
                found.add(kind)
        for pattern, is_leak in ((_INTERNAL_HOST, _is_foreign), (_IPV4, _is_internal)):
            leaks = _FirstFew(own, is_leak)
            if (yield from occurs(pattern, cut, meter, _ERROR_REACH, leaks)):
                found.add("internal address")
    return frozenset(found)


class _FirstFew:
    """Examines the first matches of a text; the agent's own hosts are not leaks."""

    def __init__(self, own: frozenset[str], is_leak: Callable[[str], bool]) -> None:
        self._own = own
        self._is_leak = is_leak
        self._left = _FOUND_MAX

    def __call__(self, match: re.Match[str]) -> bool:
        self._left -= 1
        name = match.group()
        return self._left >= 0 and name not in self._own and self._is_leak(name)


def _is_foreign(name: str) -> bool:
    del name
    return True


def _is_internal(address: str) -> bool:
    """Return whether it is private or link-local. Loopback reveals nothing about a network."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return (ip.is_private or ip.is_link_local) and not (ip.is_loopback or ip.is_unspecified)
