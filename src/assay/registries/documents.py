"""Fetches token URIs (`https:`, `http:`, `ipfs:`, `ar:`, `data:`), and caches registration files.

Reads JSON from `data:` URIs (RFC 2397), within a size limit.

Fetches token URIs (`https:`, `http:`, `ipfs:`, `ar:`, `data:`) through the egress guard.

Caches the registration files behind token URIs.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import replace
from urllib.parse import quote, unquote, unquote_to_bytes, urljoin, urlsplit

from assay.common.cache import BoundedMap, Cache
from assay.common.clock import Clock
from assay.common.egress_budget import current_use, egress_use
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.request_slots import count_own_waits
from assay.registries.model import OnchainAgent, Problems, RegistrationFile
from assay.registries.ports import (
    OVER_BUDGET,
    Document,
    DocumentOverBudget,
    Documents,
    DocumentUnavailable,
)
from assay.registries.registration import NotRegistration, parse_registration
from assay.registries.registration_json import TemplateUri, read_token_uri

_JSON = re.compile(r"(?:application|text)/(?:[a-z0-9.+-]+\+)?json|", re.IGNORECASE)
"""JSON media types, or no media type: published registration files often omit it."""

_PERCENT = 3
_SPACE = re.compile(rb"\s+")


class DataUriError(ValueError):
    """The URI carries no document; the message may be shown to the caller."""


def read_data_uri(uri: str, bytes_max: int) -> bytes:
    """Return the bytes that `uri` (beginning with `data:`) carries. Raises `DataUriError`."""
    head, comma, payload = uri[len("data:") :].partition(",")
    if not comma:
        raise DataUriError("the data URI has no comma before its content")
    media_type, *parameters = (part.strip() for part in head.split(";"))
    if not _JSON.fullmatch(media_type):
        raise DataUriError("the data URI does not carry JSON")
    # Refused before decoding: an escaped byte takes at most three characters.
    if len(payload) > _PERCENT * 2 * bytes_max:
        raise DataUriError(f"the document is larger than {bytes_max} bytes")
    content = unquote_to_bytes(payload.encode("utf-8", "replace"))
    if any(parameter.lower() == "base64" for parameter in parameters):
        content = _from_base64(content)
    if len(content) > bytes_max:
        raise DataUriError(f"the document is larger than {bytes_max} bytes")
    return content


def _from_base64(text: bytes) -> bytes:
    """Decode either base64 alphabet, with or without padding and line breaks."""
    plain = _SPACE.sub(b"", text).translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise DataUriError("the data URI is not valid base64") from None


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


DOCUMENT_TTL_S = 300.0
UNREADABLE_TTL_S = 30.0
"""How long a registration file, or its absence, is cached."""

FILES_KEPT = 500
"""The same number of last read files is kept for when their host's egress budget is used up."""

URI_CHARS_MAX = 64 * 1024
"""Longest token URI that is followed; `data:` URIs contain whole files."""

Read = tuple[RegistrationFile | None, str | None]
"""The registration file, or a sentence that says why there is none."""


class RegistrationFiles:
    """Reads and caches the files that token URIs point at."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._files: Cache[Read] = Cache(clock, _ttl_s, FILES_KEPT, _weight)
        self._last_read: BoundedMap[str, RegistrationFile] = BoundedMap(
            FILES_KEPT, lambda f: f.weight
        )

    async def read(self, uri: str) -> Read:
        """Return the file, or why there is none; never raises."""
        if not uri.strip():
            return None, "The agent has no token URI."
        if len(uri) > URI_CHARS_MAX:
            return None, f"The token URI is longer than {URI_CHARS_MAX} characters."
        problems = Problems()
        try:
            source = read_token_uri(uri, problems.note)
            if isinstance(source, bytes):
                return _with(parse_registration(source), problems), None
        except (TemplateUri, NotRegistration) as error:
            return None, str(error)
        # It costs no request, and the whole file would be the cache key.
        if source[:5].lower() == "data:":
            file, why = await self._fetch(source)
        else:
            file, why = await self._cached(source)
        return (None if file is None else _with(file, problems)), why

    async def _cached(self, uri: str) -> Read:
        try:
            return await self._files.get(uri, lambda: self._fetch(uri), current_use().sharers)
        except DocumentOverBudget as error:  # Not cached: another use may have budget left.
            return self._last_read.get(uri), str(error) if uri not in self._last_read else None

    async def _fetch(self, uri: str) -> Read:
        try:
            document = await self._documents.fetch(uri)
            file = parse_registration(document.body, uri)
        except DocumentOverBudget:
            raise
        except (DocumentUnavailable, NotRegistration) as error:
            self._last_read.pop(uri)
            return None, str(error)
        if uri[:5].lower() != "data:":
            self._last_read.put(uri, file)
        return file, None


def _with(file: RegistrationFile, problems: Problems) -> RegistrationFile:
    """Add the URI's problems to those of its file."""
    recorded = problems.recorded
    return replace(file, problems=(*recorded, *file.problems)) if recorded else file


def agent_ttl_s(agent: OnchainAgent, ttl_s: float) -> float:
    """Return how long to cache an agent: not at all if a budget kept its file from being read.

    Another use may have budget left for it.
    """
    return 0.0 if agent.registration_problem == OVER_BUDGET else ttl_s


def _weight(read: Read) -> int:
    return 1 if read[0] is None else read[0].weight


def _ttl_s(read: Read) -> float:
    return UNREADABLE_TTL_S if read[0] is None else DOCUMENT_TTL_S
