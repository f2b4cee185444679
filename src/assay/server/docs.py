"""/openapi.json and /docs: the API reference, on a page of our own, and the mark that it shows."""

import asyncio
import json
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.common.cache import SingleFlight
from assay.server.public_documents import public_document
from assay.server.route import service

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ALONE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""The policy of an image, which a browser can also open as a document of this origin."""

_PAGE = {
    "docs": "docs.html",
    "docs/reference.js": "docs.js",
    "docs/reference.css": "docs.css",
    "favicon.svg": "favicon.svg",
}
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


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
    return public_document(request, body, "application/json", max_age_s=60)


def _render(document: Callable[[], dict[str, Any]]) -> bytes:
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()


def _serve(name: str) -> Callable[[Request], Response]:
    kind = name.rpartition(".")[2]
    headers = {"content-security-policy": _ALONE if kind == "svg" else _POLICY}

    def serve(request: Request) -> Response:
        return public_document(request, _content(name), _TYPES[kind], headers)

    return serve


@lru_cache(maxsize=64)
def _content(name: str) -> bytes:
    return files("assay.server.ui").joinpath(name).read_bytes()


for _path, _name in _PAGE.items():
    router.add_api_route(f"/{_path}", _serve(_name))
