"""/openapi.json and /docs: the reference, on one page of our own."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = {"docs": "docs.html", "docs/reference.js": "docs.js", "docs/reference.css": "docs.css"}
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


def mount_docs(framework: FastAPI, document: Callable[[], dict[str, Any]]) -> None:
    """Serve the document and its page; neither is part of the document."""
    made = cache(document)

    async def openapi() -> Response:
        return JSONResponse(made(), headers={"cache-control": "public, max-age=60"})

    framework.add_api_route("/openapi.json", openapi, include_in_schema=False)
    for path, name in _PAGE.items():
        framework.add_api_route(f"/{path}", _serve(name), include_in_schema=False)


def _serve(name: str) -> Callable[[], Response]:
    text = files("assay.web.ui").joinpath(name).read_text("utf-8")
    headers = {"content-security-policy": _POLICY, "cache-control": "public, max-age=300"}

    def serve() -> Response:
        return Response(text, 200, headers, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8")

    return serve
