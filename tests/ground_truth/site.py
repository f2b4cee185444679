"""What every agent of the ground truth is given, and what it says of itself in return."""

import asyncio
import json
import mmap
import struct
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Truth = Literal["honest", "immediate", "patient"]
"""`immediate` agents are bad from the start; `patient` ones are good until their hour comes."""

Proof = Literal["well_known", "card", "openapi", "payee", "none"]
"""How an agent shows that it controls what it declares."""

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]
TYPE = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"


class SimulatedClock:
    """Hours since the start of the simulation, shared by all processes through a file."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(struct.pack("<d", 0.0))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)

    @property
    def hours(self) -> float:
        return struct.unpack("<d", self._map[:8])[0]

    @hours.setter
    def hours(self, value: float) -> None:
        self._map[:8] = struct.pack("<d", value)


@dataclass
class Site:
    """An agent's own address, its identity on the chain, and the simulated time."""

    name: str
    url: str
    agent_id: int
    wallet: str
    registry: str
    clock: SimulatedClock
    others: Mapping[str, "Site"]
    """Every site by the agent's name."""
    proof: Proof = "well_known"
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    requests: int = 0

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    @property
    def identity(self) -> dict[str, Any]:
        """The agent as the chain knows it, for its proof of control, in EIP-8004's form."""
        chain = self.registry.rpartition(":")[0]
        return {
            "registrations": [{"agentId": str(self.agent_id), "agentRegistry": self.registry}],
            "agentWallet": f"{chain}:{self.wallet}",
        }


@dataclass(frozen=True)
class Built:
    """A built agent. An `app` is served by the common server; without one it serves itself."""

    services: Sequence[tuple[str, str]]
    app: App | None = None
    file: Mapping[str, Any] = field(default_factory=dict)
    """Changes to the registration file."""


Build = Callable[[Site], Built | Awaitable[Built]]


@dataclass(frozen=True)
class Spec:
    """An agent: what is known of it, and how it is built."""

    kind: str
    name: str
    truth: Truth
    build: Build
    proof: Proof = "well_known"
    harm_h: float = 0.0
    """Simulated hours after which it first harms somebody."""
    row: str = ""
    """A row of its own, outside the bars; see left_out.json."""
    served: bool = True
    """False for agents that open their own socket."""
    useful: bool = False
    """Answers as a working agent would, and passes every check of function."""


def registration(site: Site, built: Built, description: str = "") -> dict[str, Any]:
    """The agent's registration file."""
    file: dict[str, Any] = {
        "type": TYPE,
        "name": site.name,
        "description": description or f"{site.name}, a small service.",
        "image": f"{site.url}/icon.png",
        "services": [{"name": name, "endpoint": url} for name, url in built.services],
        "active": True,
        "x402Support": any(name == "x402" for name, _ in built.services),
        "registrations": [{"agentId": site.agent_id, "agentRegistry": site.registry}],
        "supportedTrust": ["reputation"],
    }
    return file | dict(built.file)


async def send_json(
    send: Any, body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> None:
    """One JSON answer over ASGI."""
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    named = {"content-type": "application/json", "content-length": str(len(data))}
    pairs = [(k.encode(), v.encode()) for k, v in (named | dict(headers or {})).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": data})


async def read(receive: Any) -> bytes:
    """The whole body of a request."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return body
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def header(scope: Scope, name: str) -> str:
    """A request header, or the empty string."""
    return dict(scope["headers"]).get(name.encode(), b"").decode("latin-1")


async def wait_s(seconds: float) -> None:
    """An agent's own slowness, in real seconds."""
    await asyncio.sleep(seconds)
