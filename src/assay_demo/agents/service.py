"""How every sample agent is started: a process of its own, on a loopback port it picks."""

import argparse
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import uvicorn

from assay_demo import lifeline

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Self:
    """What an agent knows of itself."""

    url: str
    agent_id: int
    agent_registry: str
    repaired: bool = False
    """Without the faults that the agent has been made with."""


def run(build: Callable[[Self], App]) -> None:
    """Serve the agent until ended; prints one line of JSON with its `url` first."""
    lifeline.hold()
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent-id", type=int, default=0)
    parser.add_argument("--agent-registry", default="eip155:31337:0x" + "0" * 40)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--repaired", action="store_true")
    options = parser.parse_args()
    with socket.create_server(("127.0.0.1", options.port)) as door:
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        app = build(Self(url, options.agent_id, options.agent_registry, options.repaired))
        print(json.dumps({"url": url}), flush=True)
        config = uvicorn.Config(app, log_level="critical", access_log=False)
        uvicorn.Server(config).run(sockets=[door])
