"""/openapi.json and /docs: the reference, on one page of our own."""

import asyncio
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response

from assay.common.single_flight import SingleFlight

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {"docs": "docs.html", "docs/reference.js": "docs.js", "docs/reference.css": "docs.css"}
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


def mount_docs(framework: FastAPI, document: Callable[[], dict[str, Any]]) -> None:
    """Serve the document and its page; neither is part of the document.

    The first request has the document built, in a thread: that takes most of a second.
    """
    building = SingleFlight[bytes]()
    built: list[bytes] = []

    async def build() -> bytes:
        built.append(await asyncio.to_thread(_render, document))
        return built[0]

    async def openapi() -> Response:
        body = built[0] if built else await building.run("document", build)
        headers = {"cache-control": "public, max-age=60"}
        return Response(body, headers=headers, media_type="application/json")

    framework.add_api_route("/openapi.json", openapi, include_in_schema=False)
    for path, name in _PAGE.items():
        framework.add_api_route(f"/{path}", _serve(name), include_in_schema=False)


def _render(document: Callable[[], dict[str, Any]]) -> bytes:
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()


def _serve(name: str) -> Callable[[], Response]:
    text = files("assay.server.ui").joinpath(name).read_text("utf-8")
    headers = {"content-security-policy": _POLICY, "cache-control": "public, max-age=300"}

    def serve() -> Response:
        return Response(text, 200, headers, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8")

    return serve
