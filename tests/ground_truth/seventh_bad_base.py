"""What the bad agents of the seventh set share: their record, and tools that know their site."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI

from tests.ground_truth.mcp_parts import HandMade, Tool
from tests.ground_truth.site import Build, Built, Proof, Scope, Site, Spec
from tests.ground_truth.web_parts import openapi_identity

DAY_H = 24.0


@dataclass(frozen=True)
class SeventhBad(Spec):
    """A bad agent of the seventh set."""

    hurts: str = ""
    """What a victim would say happened to them."""


def bad(
    kind: str, name: str, build: Build, hurts: str, *, proof: Proof = "well_known",
    useful: bool = True, after_days: float = 0.0,
) -> SeventhBad:  # fmt: skip
    """One that harms from its first minute, or after some days."""
    truth = "patient" if after_days else "immediate"
    return SeventhBad(
        f"seventh {kind}", name, truth, build, proof, harm_h=after_days * DAY_H, useful=useful,
        hurts=hurts,
    )  # fmt: skip


def day(site: Site) -> float:
    """Days since the start, by the clock of the simulation."""
    return site.clock.hours / DAY_H


def tools_by_hand(
    name: str,
    listing: Callable[[Site], Callable[[Scope], Sequence[Tool]]],
    *,
    says: str = "",
    **more: Any,
) -> Build:
    """Tools without a library, whose list may depend on the site and the call."""

    def build(site: Site) -> Built:
        app = HandMade(site, name, listing(site), lambda _scope: says, **more)
        return Built([("MCP", site.url + app.path)], app)

    return build


def documented(make: Callable[[Site], FastAPI]) -> Build:
    """A service over HTTP with its OpenAPI document."""

    def build(site: Site) -> Built:
        app = make(site)
        plain = app.openapi
        app.openapi = lambda: openapi_identity(site, plain())  # type: ignore[method-assign]
        return Built([("OpenAPI", f"{site.url}/openapi.json")], app)

    return build


def schema(required: Sequence[str], **members: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    return {"type": "object", "properties": members, "required": list(required)}


def text_of_kind(about: str, **more: Any) -> dict[str, Any]:
    """The schema of one text."""
    return {"type": "string", "description": about, **more}
