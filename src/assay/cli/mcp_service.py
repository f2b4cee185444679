"""Requests of `assay mcp` to one running service, each bounded in size and time.

Nothing that the service or an agent answers is trusted: answers are read up to a limit, parsed
within bounds, and handed on as plain values.
"""

import json
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx2
from typing_extensions import override

from assay.common.json import (
    JsonObject,
    JsonValue,
    has_values_beyond,
    is_array,
    is_nested_beyond,
    is_object,
)

TIMEOUT_S: Final = 60.0
"""Of one answer; an evaluation takes 25 seconds at most."""

CONNECT_S: Final = 5.0

REQUEST_S: Final = CONNECT_S + 2 * TIMEOUT_S
"""Longest that a request takes, if its answer's head comes at once: the last piece of a body may
have been waited for when its time ends."""

ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of one JSON answer of the service; an account's wrappers are its longest list."""

VALUES_MAX, DEPTH_MAX = 200_000, 32
TEXT_CHARS_MAX, ITEMS_MAX = 400, 50

_CREDENTIAL = re.compile(r"[\x21-\x7e]{1,4096}")
_CODE = re.compile(r"[a-zA-Z0-9_]{1,64}")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of Unicode that nobody sees, but a language model reads."""


class ToolRefused(RuntimeError):
    """A tool did not do what was asked; the message says why, and holds no secret."""


class BoundedTransport(httpx2.BaseTransport):
    """Sends requests that ask for plain bytes, and ends each answer at a size and a time.

    An answer that is longer than `size_max` bytes is cut off there. A compressed answer is not
    unpacked.
    """

    def __init__(self, size_max: int) -> None:
        self._inner = httpx2.HTTPTransport(trust_env=False)
        self._size_max = size_max

    @override
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises `httpx2.HTTPError`."""
        request.headers["accept-encoding"] = "identity"
        ends_s = time.monotonic() + TIMEOUT_S
        answer = self._inner.handle_request(request)
        kept = [
            pair for pair in answer.headers.multi_items() if pair[0].lower() != "content-encoding"
        ]
        if not isinstance(answer.stream, httpx2.SyncByteStream):
            raise TypeError("a blocking transport has blocking streams")
        stream = _BoundedStream(answer.stream, self._size_max, ends_s)
        return httpx2.Response(
            answer.status_code, headers=kept, stream=stream, extensions=answer.extensions
        )

    @override
    def close(self) -> None:
        self._inner.close()


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, size_max: int, ends_s: float) -> None:
        self._inner, self._left, self._ends_s = inner, size_max, ends_s

    @override
    def __iter__(self) -> Iterator[bytes]:
        for part in self._inner:
            yield part[: self._left]
            self._left -= len(part)
            if self._left <= 0:
                return
            if time.monotonic() > self._ends_s:
                raise httpx2.ReadTimeout("the answer takes too long")

    @override
    def close(self) -> None:
        self._inner.close()


def client(size_max: int) -> httpx2.Client:
    """Return a client without redirects, cookies of the environment or its proxies."""
    timeout = httpx2.Timeout(TIMEOUT_S, connect=CONNECT_S)
    return httpx2.Client(transport=BoundedTransport(size_max), timeout=timeout, trust_env=False)


def base_address(url: str) -> str:
    """Return the address of a service without a last slash. Raises `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise ValueError("--url must be an http(s) address without a user name")
    if parts.query or parts.fragment:
        raise ValueError("--url must have no query and no fragment")
    return url.rstrip("/")


def credential(text: str, setting: str) -> Mapping[str, str]:
    """Return the header of a key or token. Raises `ValueError`, which does not show it."""
    if not _CREDENTIAL.fullmatch(text):
        raise ValueError(f"{setting} must be visible ASCII characters")
    return {"authorization": f"Bearer {text}"}


class ServiceClient:
    """Asks one service for JSON. Safe to use from several threads."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._http = client(ANSWER_BYTES_MAX)

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str | int] | None = None,
        body: JsonObject | None = None,
    ) -> JsonValue:
        """Return the JSON of a success. Raises `ToolRefused` for everything else."""
        try:
            answer = self._http.request(
                method,
                self._base + path,
                headers=dict(headers or {}),
                params=dict(query or {}),
                json=body,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            kind = type(error).__name__
            raise ToolRefused(f"the service does not answer ({kind}); try again later") from None
        found = _parsed(answer.content)
        if answer.is_success and found is not None:
            return found
        raise ToolRefused(_refusal(answer.status_code, found))


def _parsed(text: bytes) -> JsonValue:
    """Return the JSON; None if it is not JSON or exceeds the bounds."""
    if len(text) >= ANSWER_BYTES_MAX or is_nested_beyond(text, DEPTH_MAX):
        return None
    if has_values_beyond(text, VALUES_MAX):
        return None
    try:
        return json.loads(text, parse_constant=_not_a_number)
    except ValueError:
        return None


def _not_a_number(text: str) -> JsonValue:
    raise ValueError(f"{text} is not JSON")


def _refusal(status: int, found: JsonValue) -> str:
    if not is_object(found):
        return f"the service answered {status} without JSON that can be read"
    code, message = found.get("code"), found.get("message")
    shown = code if isinstance(code, str) and _CODE.fullmatch(code) else "refused"
    said = visible(message) if isinstance(message, str) else ""
    return f"the service refused it ({status} {shown}): {said}{_fields(found.get('details'))}"


def _fields(details: JsonValue) -> str:
    """Return what is wrong with each of the first fields of a request."""
    some = [one for one in details[:5] if is_object(one)] if is_array(details) else []
    texts = [(one.get("loc"), one.get("message")) for one in some]
    return "".join(
        f" {visible(str(loc[-1]), 64)}: {visible(message)}"
        for loc, message in texts
        if is_array(loc) and loc and isinstance(message, str)
    )


def visible(text: str, limit: int = TEXT_CHARS_MAX) -> str:
    """Return text without control and hidden characters, at most `limit` characters long."""
    some = text[: 4 * limit]
    kept = "".join(" " if one in "\n\r\t" else one for one in some if _is_shown(one))
    return kept if len(kept) <= limit and len(text) <= 4 * limit else kept[: limit - 1] + "…"


def _is_shown(one: str) -> bool:
    if one in "\n\r\t":
        return True
    is_selector = "\ufe00" <= one <= "\ufe0f" or "\U000e0100" <= one <= "\U000e01ef"
    return not is_selector and unicodedata.category(one) not in _HIDDEN


def quotable(value: JsonValue, depth: int = 6) -> JsonValue:
    """Return a value with each text, list and depth bounded and every hidden character removed."""
    if isinstance(value, str):
        return visible(value)
    if is_object(value):
        if not depth:
            return None
        some = list(value.items())[:ITEMS_MAX]
        return {visible(name, 64): quotable(one, depth - 1) for name, one in some}
    if is_array(value):
        return [quotable(one, depth - 1) for one in value[:ITEMS_MAX]] if depth else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        return str(value)[:80]
    return value
