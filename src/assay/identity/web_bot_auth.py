"""Proves an agent by the key of its domain: Web Bot Auth.

A signed request names its domain in `Signature-Agent`; the domain publishes its keys. The domain
speaks for a registered agent only if an evaluation has found proven control of that whole host for
the agent. That is asked first, so a caller cannot make the service fetch from hosts of its choice.

Source: draft-meunier-web-bot-auth-architecture; draft-meunier-http-message-signatures-directory;
ADR 0047.
"""

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pydantic_core import from_json

from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.egress_budget import RESERVED, egress_use
from assay.common.http_heads import HeaderPairs
from assay.common.json import has_values_beyond, is_array, is_nested_beyond, is_object
from assay.common.shared_state import SharedState
from assay.http1.model import Target
from assay.identity.http_signatures import SKEW_S, SignedRequest, read_signature
from assay.identity.model import AgentHeaders, DomainProof, WebBotAuthRefused
from assay.net.egress.consent import origin_of
from assay.net.egress.ports import EgressClient, EgressError, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy, parse_target

DIRECTORY_PATH: Final = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE: Final = "application/http-message-signatures-directory+json"
"""Source for both: draft-meunier-http-message-signatures-directory, sections 4 and 8."""

KEYS_MAX: Final = 20
KEPT_S: Final = 300.0
"""How long a directory is used again: the longest that a removed key is still accepted."""
FAILURE_KEPT_S: Final = 60.0
CONTROL_KEPT_S: Final = 30.0

_LIMITS = Limits(connect_s=3.0, total_s=5.0, body_bytes_max=64 * 1024)
_READ_S = 6.0
_KEY_BYTES = 32
_JSON_VALUES_MAX = 2000
_JSON_DEPTH_MAX = 6
_MILLISECONDS_FROM = 100_000_000_000
_OK = 200
_DIRECTORIES_MAX = 1000
_CONTROLS_MAX = 10_000

ControlsHost = Callable[[str, str], Awaitable[bool]]
"""Returns whether the agent of a subject key has undisputed, recent control of a whole origin."""


@dataclass(frozen=True, slots=True)
class DirectoryKey:
    """An Ed25519 key, valid from `begins_s` until before `ends_s` (Unix seconds)."""

    thumbprint: str
    public: bytes
    begins_s: float
    ends_s: float


@dataclass(frozen=True, slots=True)
class KeyDirectory:
    """The Ed25519 keys of a domain, valid now or at another time; or why it has none."""

    keys: Sequence[DirectoryKey] = ()
    problem: str | None = None

    def valid_at(self, now_s: float) -> Mapping[str, bytes]:
        """Return the keys that are valid at a time, by thumbprint."""
        current = [one for one in self.keys if one.begins_s <= now_s < one.ends_s]
        return {one.thumbprint: one.public for one in current}


def is_domain_signed(headers: AgentHeaders, agent_id: str | None) -> bool:
    """Return whether a request proves its agent by a domain's key, and by nothing else.

    A wallet's proof comes first: then the signature is not read.
    """
    return (
        headers.signature_agent is not None
        and bool(agent_id)
        and headers.address is None
        and headers.session is None
        and headers.signature is None
    )


class WebBotAuth:
    """Verifies signed requests. `address` is the public base address of wrappers."""

    def __init__(
        self,
        http: EgressClient,
        policy: EgressPolicy,
        controls_host: ControlsHost,
        state: SharedState,
        clock: Clock,
        address: str,
    ) -> None:
        self._http = http
        self._policy = policy
        self._controls_host = controls_host
        self._state = state
        self._clock = clock
        self._address = urlsplit(address)
        self._controls: Cache[bool] = Cache(clock, CONTROL_KEPT_S, _CONTROLS_MAX)
        self._directories: Cache[KeyDirectory] = Cache(
            clock,
            lambda found: KEPT_S if found.problem is None else FAILURE_KEPT_S,
            _DIRECTORIES_MAX,
        )

    def request_of(
        self, method: str, path: str, query: str | None, headers: HeaderPairs
    ) -> SignedRequest:
        """Return a request to this service's wrappers; `path` begins with `/wrap/`."""
        derived = {"@method": method, "@path": path, "@query": f"?{query or ''}"}
        derived |= {"@scheme": self._address.scheme}
        authority = _authority(self._address.scheme, self._address.netloc)
        # All sellers share the authority: without the path, each could use what it receives.
        return SignedRequest(headers, (authority,), derived, required=("@path",))

    async def prove(
        self, request: SignedRequest, subject_key: str, *, spends: bool = True
    ) -> DomainProof:
        """Return proof that the domain's key signed this request for the agent.

        With `spends`, a signature is accepted once in all processes. The caller must still check
        that the agent's registration names the domain (`identity.model.require_control`). Raises
        `WebBotAuthRefused`, and `Unavailable` if the shared state cannot be used.
        """
        found = read_signature(request, self._clock.now().timestamp())
        origin = self._origin(found.agent)
        if not await self._is_controlled(subject_key, origin):
            raise _refused(
                "domain_not_proven",
                "No evaluation of this agent has proven that it controls the whole host of"
                " Signature-Agent: declare a service there, prove control, and have it evaluated.",
            )
        directory = await self._directories.get(origin, lambda: self._fetch(origin))
        if directory.problem is not None:
            raise _refused("directory", directory.problem)
        key = directory.valid_at(self._clock.now().timestamp()).get(found.key_id)
        if key is None:
            raise _refused(
                "unknown_key",
                "The key directory has no valid Ed25519 key of this keyid; it is read again after"
                f" {KEPT_S:g} seconds.",
            )
        if not found.is_signed_by(key):
            raise _refused(
                "signature_invalid",
                "The signature is not of this key over this request: sign the public host of the"
                " API as @authority.",
            )
        if spends:
            await self._spend(f"{found.key_id} {found.nonce}", found.expires)
        return DomainProof(origin, subject_key)

    async def _is_controlled(self, subject_key: str, origin: str) -> bool:
        async def load() -> bool:
            return await self._controls_host(subject_key, origin)

        return await self._controls.get(f"{subject_key} {origin}", load)

    def _origin(self, agent: str) -> str:
        """Return the origin that `Signature-Agent` names."""
        target = parse_target(agent, self._policy)
        if not isinstance(target, Target) or target.path_and_query not in {"/", DIRECTORY_PATH}:
            raise _refused("agent", "Signature-Agent must be an https address without a path.")
        return origin_of(target)

    async def _spend(self, used: str, expires: int) -> None:
        left_s = expires - self._clock.now().timestamp() + SKEW_S
        key = f"web-bot-auth:{hashlib.sha256(used.encode()).hexdigest()}"
        if not await self._state.put_if_absent(key, "1", max(left_s, SKEW_S)):
            raise _refused(
                "replayed", "This nonce was used before: sign every request with a new one."
            )

    async def _fetch(self, origin: str) -> KeyDirectory:
        """Return the directory of an origin. Redirects are not followed. Never raises."""
        request = OutboundRequest("GET", origin + DIRECTORY_PATH, {"accept": MEDIA_TYPE})
        try:
            with egress_use(RESERVED):  # the host's own share is kept for visits
                async with asyncio.timeout(_READ_S):
                    reply = await self._http.send(request, _LIMITS)
        except (EgressError, TimeoutError):
            return KeyDirectory(problem="The key directory of Signature-Agent could not be read.")
        kind = (reply.header("content-type") or "").partition(";")[0].strip().lower()
        if reply.status != _OK or kind != MEDIA_TYPE or reply.truncated:
            problem = f"The key directory must answer 200 with {MEDIA_TYPE}, and at most 64 KiB."
            return KeyDirectory(problem=problem)
        return read_directory(reply.body)


def read_directory(body: bytes) -> KeyDirectory:
    """Return the Ed25519 keys of a JWK Set, each with its time. Never raises.

    Source: RFC 7517, section 5; RFC 8037, section 2; RFC 7638, section 3.
    """
    problem = KeyDirectory(
        problem=f"The key directory must be a JWK Set of at most {KEYS_MAX} keys."
    )
    if has_values_beyond(body, _JSON_VALUES_MAX) or is_nested_beyond(body, _JSON_DEPTH_MAX):
        return problem
    try:
        document: object = from_json(body, allow_inf_nan=False)
    except ValueError:
        return problem
    rows = document.get("keys") if is_object(document) else None
    if not is_array(rows) or len(rows) > KEYS_MAX:
        return problem
    found = [_key_of(row) for row in rows if is_object(row)]
    return KeyDirectory([one for one in found if one is not None])


def _key_of(row: Mapping[str, object]) -> DirectoryKey | None:
    """Return the Ed25519 key of a row that is for signatures and says its time, or None."""
    if (row.get("kty"), row.get("crv"), row.get("use", "sig")) != ("OKP", "Ed25519", "sig"):
        return None
    public, times = _key_bytes(row.get("x")), _times(row)
    if public is None or times is None:
        return None
    return DirectoryKey(thumbprint(public), public, *times)


def thumbprint(key: bytes) -> str:
    """Return the JWK thumbprint of an Ed25519 key. Source: RFC 8037, appendix A.3."""
    text = f'{{"crv":"Ed25519","kty":"OKP","x":"{_base64url(key)}"}}'
    return _base64url(hashlib.sha256(text.encode()).digest())


def _times(row: Mapping[str, object]) -> tuple[float, float] | None:
    """Return when a key begins and ends, in seconds; stock directories have milliseconds too."""
    limits = [row.get("nbf", 0), row.get("exp", _MILLISECONDS_FROM - 1)]
    if not all(type(limit) in {int, float} for limit in limits):
        return None
    begins, ends = (
        float(str(limit)) / (1000 if float(str(limit)) >= _MILLISECONDS_FROM else 1)
        for limit in limits
    )
    return begins, ends


def _key_bytes(text: object) -> bytes | None:
    """Return the 32 bytes of a JWK's `x` in its one spelling, or None."""
    if not isinstance(text, str) or len(text) != 43 or not text.isascii():  # noqa: PLR2004 - 32 bytes
        return None
    try:
        key = base64.urlsafe_b64decode(text + "=")
    except ValueError:
        return None
    return key if len(key) == _KEY_BYTES and _base64url(key) == text else None


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _authority(scheme: str, netloc: str) -> str:
    """Return a host and port as `@authority` has them. Source: RFC 9421, section 2.2.3."""
    return netloc.lower().removesuffix(":443" if scheme == "https" else ":80")


def _refused(reason: str, message: str) -> WebBotAuthRefused:
    return WebBotAuthRefused(message, reason=f"web_bot_auth_{reason}")
