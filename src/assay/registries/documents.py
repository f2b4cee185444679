"""Fetches token URIs (`https:`, `http:`, `ipfs:`, `ar:`, `data:`) through the egress guard."""

import base64
import hashlib
import re
from dataclasses import replace
from urllib.parse import quote, unquote, urljoin, urlsplit

from assay.common.egress_budget import current_use, egress_use
from assay.net.data_uri import DataUriError, read_data_uri
from assay.net.egress.host_timeout import count_own_waits
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.registries.ports import OVER_BUDGET, Document, DocumentOverBudget, DocumentUnavailable

REDIRECTS_MAX = 3
"""Redirects followed for a document; each target passes the egress guard again."""

DOCUMENT_LIMITS = Limits()
"""1 MiB in 5 s. Source: checks.md#response-bounds."""

_REDIRECT = frozenset({301, 302, 303, 307, 308})
_OK = 200
_CID = re.compile(r"[A-Za-z0-9]{46,128}")
_ARWEAVE = re.compile(r"ar:/{0,2}([A-Za-z0-9_-]{43}(?:/[A-Za-z0-9_.~%-]+)*)", re.IGNORECASE)
"""A transaction id, 32 bytes in base64url, and a path below it. Source: ANS-104, ar:// scheme."""

_RAW_SHA256 = b"\x01\x55\x12\x20"
"""CIDv1, codec raw, sha2-256, 32 bytes. Source: the multiformats tables."""

_SENTENCES = {
    Failure.REFUSED_ADDRESS: "the document's address is not one that is called",
    Failure.NAME: "the host name of the document does not resolve",
    Failure.CONNECT: "the document's server does not accept connections",
    Failure.TLS: "the document's server has no valid TLS certificate",
    Failure.TIMEOUT: "the document's server did not answer in time",
    Failure.PROTOCOL: "the document's server broke the HTTP protocol",
    Failure.BUDGET: OVER_BUDGET,
}


class GuardedDocuments:
    """Fetches documents through an `EgressClient`, whose policy decides whether `http:` is allowed.

    `ipfs:` goes to `ipfs_gateway`, `ar:` to `arweave_gateway` (None switches them off). A document
    of the former is checked against its CID if the CID is the hash of the file itself (CIDv1, raw,
    sha2-256, no path). Other CIDs, like Arweave's ids, hash a tree of blocks and not the file:
    their gateway is trusted.
    """

    def __init__(
        self,
        http: EgressClient,
        ipfs_gateway: str | None,
        limits: Limits = DOCUMENT_LIMITS,
        *,
        arweave_gateway: str | None = None,
    ) -> None:
        self._http = http
        self._gateway = ipfs_gateway.rstrip("/") if ipfs_gateway else None
        self._arweave = arweave_gateway.rstrip("/") if arweave_gateway else None
        self._limits = limits

    async def fetch(self, uri: str) -> Document:
        scheme = uri.partition(":")[0].lower()
        if scheme in {"https", "http"}:
            return Document(await self._fetch_http(uri))
        if scheme == "ipfs":
            return Document(await self._fetch_ipfs(uri))
        if scheme == "ar" and self._arweave is not None:
            return Document(await self._fetch_arweave(self._arweave, uri))
        if scheme == "data":
            return self._read_data(uri)
        raise DocumentUnavailable("the token URI is not of a kind that can be fetched")

    def _read_data(self, uri: str) -> Document:
        try:
            return Document(read_data_uri(uri, self._limits.body_bytes_max))
        except DataUriError as error:
            raise DocumentUnavailable(str(error)) from error

    async def _fetch_ipfs(self, uri: str) -> bytes:
        if self._gateway is None:
            raise DocumentUnavailable("ipfs documents are switched off here")
        cid, path = _split_ipfs(uri)
        with egress_use(replace(current_use(), is_document=True)):
            body = await self._fetch_http(f"{self._gateway}/ipfs/{cid}{path}")
        expected = None if path else _sha256_of(cid)
        if expected is not None and hashlib.sha256(body).digest() != expected:
            raise DocumentUnavailable("the ipfs gateway returned other content than was asked for")
        return body

    async def _fetch_arweave(self, gateway: str, uri: str) -> bytes:
        found = _ARWEAVE.fullmatch(uri)
        if found is None:
            raise DocumentUnavailable("the arweave address is not well formed")
        with egress_use(replace(current_use(), is_document=True)):
            return await self._fetch_http(f"{gateway}/{found[1]}")

    async def _fetch_http(self, url: str) -> bytes:
        for _ in range(REDIRECTS_MAX + 1):
            reply = await self._send(url)
            if reply.status not in _REDIRECT:
                return _body_of(reply, self._limits)
            url = _next_hop(url, reply.header("location"))
        raise DocumentUnavailable("the document's server redirects too often")

    async def _send(self, url: str) -> EgressResponse:
        request = OutboundRequest("GET", url, {"accept": "application/json, */*;q=0.5"})
        try:
            with count_own_waits(is_visit=True):
                return await self._http.send(request, self._limits)
        except EgressError as error:
            kind = DocumentOverBudget if error.failure is Failure.BUDGET else DocumentUnavailable
            raise kind(_SENTENCES[error.failure]) from error


def _body_of(reply: EgressResponse, limits: Limits) -> bytes:
    if reply.over_budget:
        raise DocumentOverBudget(OVER_BUDGET)
    if reply.status != _OK:
        raise DocumentUnavailable(f"the document's server answered with status {reply.status}")
    if reply.truncated:
        raise DocumentUnavailable(f"the document is larger than {limits.body_bytes_max} bytes")
    return reply.body


def _next_hop(url: str, location: str | None) -> str:
    if not location:
        raise DocumentUnavailable("the document's server redirects to nowhere")
    try:
        target = urljoin(url, location)
        scheme = urlsplit(target).scheme
    except ValueError as error:
        raise DocumentUnavailable("the document's server redirects to a wrong address") from error
    if scheme != "https" and url.lower().startswith("https:"):
        raise DocumentUnavailable("the document's server redirects away from https")
    return target


def _split_ipfs(uri: str) -> tuple[str, str]:
    """Return the CID and the path below it; also accepts `ipfs://ipfs/CID`, an old spelling."""
    rest = re.split(r"[?#]", uri.partition(":")[2].lstrip("/"), maxsplit=1)[0]
    cid, slash, path = rest.removeprefix("ipfs/").partition("/")
    segments = unquote(path).split("/")
    if not _CID.fullmatch(cid) or ".." in segments or "." in segments:
        raise DocumentUnavailable("the ipfs address is not well formed")
    return cid, quote(slash + unquote(path), errors="replace") if path else ""


def _sha256_of(cid: str) -> bytes | None:
    """Return the hash of the file that `cid` names, or None if it names a tree of blocks."""
    if not cid.startswith("b"):  # Multibase prefix of lower-case base32.
        return None
    text = cid[1:].upper()
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except ValueError:
        return None
    is_raw = (
        raw.startswith(_RAW_SHA256) and len(raw) == len(_RAW_SHA256) + hashlib.sha256().digest_size
    )
    return raw[len(_RAW_SHA256) :] if is_raw else None
