"""Finds documents that a page or an index links to. Pure. Sources: RFC 8288, RFC 8631."""

import html
import re
from itertools import islice
from typing import Final
from urllib.parse import urljoin

from assay.net.egress.ports import EgressResponse
from assay.probing.probe_client import same_site

TEXT_CHARS_MAX = 64 * 1024
DOCUMENTS_MAX = 3
NAMES_MAX = 100
"""Places in a text at which the name of a document is read."""

_NAME: Final = re.compile(r"(?:openapi|swagger|api-docs)[^\"'()\s<>]{0,100}+(?!\()", re.IGNORECASE)
_BEFORE_CHARS: Final = 300
_DELIMITER: Final = re.compile(r"[\"'()\s<>=]")
_SERVICE_DESC: Final = re.compile(r"<([^<>]{1,500})>\s*;[^,]{0,200}service-desc", re.IGNORECASE)
_NO_DOCUMENT: Final = re.compile(r"\.(?:js|css|png|svg|ico|html?|ya?ml|md)$|\.(?:js|css)\?|/ui")


def documents_linked(reply: EgressResponse, url: str) -> list[str]:
    """Return same-site addresses where a reply says that its OpenAPI document is."""
    text = reply.body[:TEXT_CHARS_MAX].decode("utf-8", "replace")
    found = _SERVICE_DESC.findall(reply.header("link") or "")
    found += [html.unescape(path) for path in _named_in(text)]
    urls = [absolute(url, path) for path in found if not _NO_DOCUMENT.search(path)]
    return list(dict.fromkeys(u for u in urls if same_site(u, url)))[:DOCUMENTS_MAX]


def _named_in(text: str) -> list[str]:
    """Return the addresses in a text that are named like a document."""
    found: list[str] = []
    for match in islice(_NAME.finditer(text), NAMES_MAX):
        before = text[max(0, match.start() - _BEFORE_CHARS) : match.start()]
        found.append(_DELIMITER.split(before)[-1] + match[0])
    return found


def absolute(url: str, path: str) -> str:
    """Return the address that a page at `url` means; empty if it is invalid."""
    try:
        return urljoin(url, path)
    except ValueError:
        return ""
