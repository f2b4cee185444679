"""/openapi.json and /docs: the API reference, on a page of our own."""

import asyncio
import json
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.common.cache import SingleFlight
from assay.server.route import service

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {"docs": "docs.html", "docs/reference.js": "docs.js", "docs/reference.css": "docs.css"}
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


router = APIRouter(include_in_schema=False)
"""These routes are not part of the document."""


class Reference:
    """The OpenAPI document of one service.

    It is built in a thread on the first request, which takes most of a second.
    """

    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._document = document
        self._building = SingleFlight[bytes]()
        self._built: bytes | None = None

    async def rendered(self) -> bytes:
        """Return the document as JSON."""
        return self._built or await self._building.run("document", self._build)

    async def _build(self) -> bytes:
        self._built = await asyncio.to_thread(_render, self._document)
        return self._built


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Return what the service can be asked."""
    body = await service(request, Reference).rendered()
    headers = {"cache-control": "public, max-age=60"}
    return Response(body, headers=headers, media_type="application/json")


def _render(document: Callable[[], dict[str, Any]]) -> bytes:
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()


def _serve(name: str) -> Callable[[], Response]:
    headers = {"content-security-policy": _POLICY, "cache-control": "public, max-age=300"}
    media_type = f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8"

    def serve() -> Response:
        return Response(_text(name), 200, headers, media_type)

    return serve


@lru_cache(maxsize=64)
def _text(name: str) -> str:
    return files("assay.server.ui").joinpath(name).read_text("utf-8")


for _path, _name in _PAGE.items():
    router.add_api_route(f"/{_path}", _serve(_name))
