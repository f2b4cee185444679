"""Real agents behind a log-in: stock servers that answer 401 to whoever brings no credential."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.chains.model import Network

SECRET = "evl-5f0c9A7d/2b+41e8_Z"
"""Has what the forms of a secret differ in: a slash, a plus, capitals and digits."""

FILE = "/.well-known/agent-registration.json"


@dataclass
class Asked:
    """What came to the server: path, and whether the credential was there."""

    entered: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    seen_headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])


@dataclass
class LogIn:
    """Lets requests in that bring the secret; the proof of control is for everybody."""

    network: Network
    agent_id: str = "7"
    header: str = "authorization"
    value: str = f"Bearer {SECRET}"
    parameter: str = ""
    is_telling: bool = False
    """It repeats the credential in headers and errors, in every form."""
    open_to: Callable[[str], bool] = lambda _: False
    asked: Asked = field(default_factory=Asked)

    def __call__(self, app: Callable[[str], ASGIApp]) -> Callable[[str], ASGIApp]:
        return lambda base: self._closed(app(base))

    def _closed(self, inner: ASGIApp) -> ASGIApp:
        async def guard(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope["path"]
            if path == FILE:
                await JSONResponse(self._proof())(scope, receive, send)
                return
            headers = {k.decode().lower(): v.decode("latin-1") for k, v in scope["headers"]}
            self.asked.seen_headers.append(headers)
            if not self._is_let_in(headers, scope["query_string"].decode()):
                self.asked.refused.append(path)
                if not self.open_to(path):
                    refusal = Response("who are you?", 401, {"www-authenticate": "Bearer"})
                    await refusal(scope, receive, send)
                    return
            else:
                self.asked.entered.append(path)
            await inner(scope, receive, _telling(send) if self.is_telling else send)

        return guard

    def _is_let_in(self, headers: dict[str, str], query: str) -> bool:
        if self.parameter:
            return parse_qs(query).get(self.parameter) == [self.value]
        return headers.get(self.header) == self.value

    def _proof(self) -> dict[str, object]:
        registry = f"{self.network.caip2}:{self.network.identity_registry}"
        return {"registrations": [{"agentId": int(self.agent_id), "agentRegistry": registry}]}


def told_forms() -> list[str]:
    """The secret as a service may write it."""
    octets = SECRET.encode()
    return [
        SECRET,
        SECRET.upper(),
        SECRET[::-1],
        quote(SECRET, safe=""),
        "".join(f"%{byte:02x}" for byte in octets),
        "".join(f"\\u{byte:04x}" for byte in octets),
        "".join(f"&#{byte};" for byte in octets),
        json.dumps(SECRET).replace("/", "\\/"),
        octets.hex(),
        *(base64.b64encode(b"x" * n + octets + b"yz").decode() for n in range(3)),
        base64.urlsafe_b64encode(f"Bearer {SECRET}".encode()).decode(),
    ]


def _telling(send: Send) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            extra = [(b"x-told", form.encode()) for form in told_forms()]
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return tell
