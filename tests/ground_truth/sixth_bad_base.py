"""What the bad agents of the sixth set share: their record, and the ways to put them up."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp.server import MCPServer

from tests.ground_truth.a2a_parts import CARD, Face, Reply, hand_made_a2a, stock_a2a
from tests.ground_truth.mcp_parts import HandMade, Tool, sse_mcp, stock_mcp
from tests.ground_truth.site import App, Build, Built, Proof, Scope, Site, Spec


@dataclass(frozen=True)
class SixthBad(Spec):
    """A bad agent of the sixth set."""

    hurts: str = ""
    """What a victim would say happened to them."""


def bad(
    kind: str, name: str, build: Build, hurts: str, *, proof: Proof = "well_known",
    useful: bool = True,
) -> SixthBad:  # fmt: skip
    """One that is bad from its first minute."""
    return SixthBad(f"sixth {kind}", name, "immediate", build, proof, useful=useful, hurts=hurts)


def by_library(face: Face, reply: Reply, **options: Any) -> Build:
    """An agent for messages on the official library."""
    return lambda site: Built([("A2A", site.url + CARD)], stock_a2a(site, face, reply, **options))


def by_hand(face: Face, reply: Reply, file: dict[str, Any] | None = None) -> Build:
    """An agent for messages without a library; `file` is added to its registration."""

    def build(site: Site) -> Built:
        return Built([("A2A", site.url + CARD)], hand_made_a2a(site, face, reply), file or {})

    return build


def with_server(make: Callable[[], MCPServer[Any]], *, sse: bool = False, **how: Any) -> Build:
    """Tools on the official library."""

    def build(site: Site) -> Built:
        if sse:
            return Built([("MCP", f"{site.url}/sse")], sse_mcp(make()))
        return Built([("MCP", f"{site.url}/mcp")], stock_mcp(make(), **how))

    return build


def with_tools(
    name: str,
    make: Callable[[], list[Tool]],
    *,
    says: str = "",
    file: dict[str, Any] | None = None,
    **more: Any,
) -> Build:
    """Tools without a library."""

    def build(site: Site) -> Built:
        tools = make()

        def listing(_scope: Scope) -> list[Tool]:
            return tools

        app = HandMade(site, name, listing, lambda _scope: says, **more)
        return Built([("MCP", site.url + app.path)], app, file or {})

    return build


def on_web(
    make: Callable[[Site], App], path: str = "/", *, named: str = "web",
    file: dict[str, Any] | None = None,
) -> Build:  # fmt: skip
    """A service over plain HTTP."""
    return lambda site: Built([(named, site.url + path)], make(site), file or {})


def token_of(word: str, length: int = 32) -> str:
    """A key that looks like one, always the same for a word."""
    return hashlib.blake2b(word.encode(), digest_size=length // 2).hexdigest()


def figures(text: str) -> list[float]:
    """The numbers in a text, in Western or Arabic digits, with a point or comma before cents."""
    found = re.findall(r"\d+(?:[,.]\d+)*", text)
    return [_number(one) for one in found]


def _number(text: str) -> float:
    whole, mark, rest = text, "", ""
    if len(text) > 1 and (cut := max(text.rfind("."), text.rfind(","))) > 0:
        whole, mark, rest = text[:cut], text[cut], text[cut + 1 :]
    if mark and len(rest) == 3:
        whole, rest = whole + rest, ""
    return float(re.sub(r"\D", "", whole) + (f".{rest}" if rest else ""))
