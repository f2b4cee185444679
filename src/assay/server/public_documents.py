"""Answers requests for public documents, which anybody may store and ask for again.

A document carries an entity tag of its content. A caller whose copy has the same tag gets 304.
Source: RFC 9110, sections 8.8.3, 13.1.2 and 15.4.5.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from fastapi import Request
from fastapi.responses import Response

MAX_AGE_S: Final = 300
"""Seconds for which a copy is used without asking again."""

TEXT: Final = "text/plain; charset=utf-8"


def public_document(
    request: Request,
    body: bytes,
    media_type: str,
    headers: Mapping[str, str] | None = None,
    *,
    max_age_s: int = MAX_AGE_S,
    tag: str | None = None,
) -> Response:
    """Return the document, or 304 if `If-None-Match` names its tag.

    Equal bytes always have the same tag; `tag` is it, if the caller knows it already. The response
    depends on no other header of the request.
    """
    tag = tag or tag_of(body)
    shown = {"cache-control": f"public, max-age={max_age_s}", "etag": tag, **(headers or {})}
    if is_current(request.headers.getlist("if-none-match"), tag):
        return Response(status_code=304, headers=shown)
    return Response(body, headers=shown, media_type=media_type)


def tag_of(body: bytes) -> str:
    """Return the entity tag of a content."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def is_current(known: list[str], tag: str) -> bool:
    """Return whether the values of `If-None-Match` name the tag.

    It compares weakly: a proxy that compresses a document makes its tag a weak one. Our tags
    contain no comma, so a list can be split at each.
    """
    given = {one.strip().removeprefix("W/") for line in known for one in line.split(",")}
    return tag in given or given == {"*"}
