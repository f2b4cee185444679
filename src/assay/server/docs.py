"""/openapi.json, /openapi.yaml and /docs: the API reference, shown by Swagger UI, and its icon."""

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from assay.common.cache import SingleFlight
from assay.common.errors import NotFound
from assay.server.public_documents import public_document, tag_of
from assay.server.route import service

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Swagger UI sets styles inline, and runs no script but its file."""
_ALONE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""The policy of a part, which a browser can also open as a document of this origin."""

_IMMUTABLE = {
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": _ALONE,
}
"""A name has the hash of its content, so a copy is never out of date (RFC 8246)."""

_PARTS = (
    "docs.css",
    "docs.js",
    "swagger-ui/swagger-ui.css.gz",
    "swagger-ui/swagger-ui-bundle.js.gz",
)
"""`tools/vendor_docs.py` fetches those of Swagger UI."""

_JAVASCRIPT = "text/javascript; charset=utf-8"
_CSS = "text/css; charset=utf-8"

_CODINGS_MAX = 20
_REFUSED_WEIGHT = re.compile(r"q\s*=\s*0(\.0{0,3})?")
_UNPRINTABLE = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff]")
"""What JSON allows in a string and YAML does not."""

router = APIRouter(include_in_schema=False)
"""These routes are not part of the document."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text as it is sent, with and without compression."""

    body: bytes
    compressed: bytes
    tag: str
    compressed_tag: str
    """They name the content (RFC 9110, section 8.8.3)."""


class Reference:
    """The OpenAPI document of one service.

    It is built in a thread on the first request, which takes most of a second.
    """

    def __init__(self, document: Callable[[], dict[str, Any]]) -> None:
        self._document = document
        self._building = SingleFlight[Mapping[str, EncodedText]]()
        self._built: Mapping[str, EncodedText] | None = None

    async def rendered(self) -> Mapping[str, EncodedText]:
        """Return the document as JSON and as YAML, by media type."""
        return self._built or await self._building.run("document", self._build)

    async def _build(self) -> Mapping[str, EncodedText]:
        self._built = await asyncio.to_thread(_render, self._document)
        return self._built


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Return what the service can be asked."""
    return await _sent(request, "application/json")


@router.get("/openapi.yaml")
async def openapi_yaml(request: Request) -> Response:
    """Return the same document as YAML (RFC 9512)."""
    return await _sent(request, "application/yaml")


async def _sent(request: Request, media_type: str) -> Response:
    text = (await service(request, Reference).rendered())[media_type]
    return _negotiated(request, text, media_type, {"cache-control": "public, max-age=60"})


def _negotiated(
    request: Request, text: EncodedText, media_type: str, headers: Mapping[str, str]
) -> Response:
    is_compressed = accepts_gzip(request.headers.get("accept-encoding", ""))
    body, tag = (text.compressed, text.compressed_tag) if is_compressed else (text.body, text.tag)
    shown = {"vary": "accept-encoding", **headers}
    response = public_document(request, body, media_type, shown, tag=tag)
    if is_compressed and response.body:  # a 304 has none
        response.headers["content-encoding"] = "gzip"
    return response


def accepts_gzip(accepted: str) -> bool:
    """Return whether `Accept-Encoding` names gzip, without weight 0 (RFC 9110, section 12.5.3)."""
    for one in accepted.lower().split(",")[:_CODINGS_MAX]:
        coding, _, weight = one.partition(";")
        if coding.strip() == "gzip":
            return not _REFUSED_WEIGHT.fullmatch(weight.strip())
    return False


def _render(document: Callable[[], dict[str, Any]]) -> Mapping[str, EncodedText]:
    made = document()
    texts = {
        "application/json": json.dumps(made, ensure_ascii=False, separators=(",", ":")),
        "application/yaml": "".join(yaml_lines(made)),
    }
    return {name: _encoded(text.encode()) for name, text in texts.items()}


def _encoded(body: bytes) -> EncodedText:
    tag = tag_of(body)
    return EncodedText(body, gzip.compress(body, mtime=0), tag, f'{tag[:-1]}-gzip"')


@router.get("/docs")
def docs(request: Request) -> Response:
    """Return the page; it asks for nothing outside this service."""
    headers = {"content-security-policy": _POLICY}
    return public_document(request, _page(), "text/html; charset=utf-8", headers, max_age_s=0)


@router.get("/docs/{name}")
def docs_part(request: Request, name: str) -> Response:
    """Return a script or style of the page, as it was compressed once; 404 for any other name."""
    part = _parts().get(name)
    if part is None:
        raise NotFound("The page /docs has no such part.")
    media_type = _JAVASCRIPT if name.endswith(".js") else _CSS
    return _negotiated(request, part, media_type, _IMMUTABLE)


@router.get("/favicon.svg")
def icon(request: Request) -> Response:
    """Return the icon."""
    headers = {"content-security-policy": _ALONE}
    return public_document(request, _file("favicon.svg"), "image/svg+xml", headers)


@lru_cache(maxsize=1)
def _page() -> bytes:
    page = _file("docs.html").decode()
    for name in _parts():
        stem, _, kind = name.split(".")
        page = page.replace(f"{{{stem}.{kind}}}", name)
    return page.encode()


@lru_cache(maxsize=1)
def _parts() -> Mapping[str, EncodedText]:
    """Return the parts of the page by the names they are served under: `docs.<hash>.css`."""
    parts: dict[str, EncodedText] = {}
    for path in _PARTS:
        content = _file(path)
        text = _vendored(content) if path.endswith(".gz") else _encoded(content)
        stem, _, kind = path.rpartition("/")[2].removesuffix(".gz").rpartition(".")
        parts[f"{stem}.{text.tag[1:17]}.{kind}"] = text
    return parts


def _vendored(compressed: bytes) -> EncodedText:
    body = gzip.decompress(compressed)
    tag = tag_of(body)
    return EncodedText(body, compressed, tag, f'{tag[:-1]}-gzip"')


def _file(path: str) -> bytes:
    return files("assay.server.ui").joinpath(path).read_bytes()


def yaml_lines(node: Mapping[str, Any] | Sequence[Any], depth: int = 0) -> Iterator[str]:
    """Yield JSON data as YAML 1.2 in block style; its scalars are those of JSON, which are YAML."""
    marked = (
        ((f"{_scalar(name)}:", value) for name, value in node.items())
        if isinstance(node, Mapping)
        else (("-", value) for value in node)
    )
    for mark, value in marked:
        if value and not isinstance(value, str | int | float):
            yield f"{'  ' * depth}{mark}\n"
            yield from yaml_lines(value, depth + 1)
        else:
            yield f"{'  ' * depth}{mark} {_scalar(value)}\n"


def _scalar(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
