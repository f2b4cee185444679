"""/openapi.json, /openapi.yaml and /docs: the API reference on a page of our own, and its mark."""

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
from assay.server.public_documents import public_document, tag_of
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
    is_compressed = accepts_gzip(request.headers.get("accept-encoding", ""))
    body, tag = (text.compressed, text.compressed_tag) if is_compressed else (text.body, text.tag)
    shown = {"vary": "accept-encoding"}
    response = public_document(request, body, media_type, shown, max_age_s=60, tag=tag)
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
