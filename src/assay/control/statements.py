"""A document's statement about an address, and its result for a service. Pure."""

from dataclasses import dataclass
from typing import Literal

from assay.common.json import JsonObject, JsonValue
from assay.control.publish import instructions
from assay.control.scope import ControlScope, scope_key
from assay.control.statements_in_documents import NamedAgents
from assay.registries.subject import Subject

Proof = Literal["dns", "well_known", "card", "openapi", "x402_payee"]

STRONGEST_FIRST: tuple[Proof, ...] = ("dns", "well_known", "card", "openapi", "x402_payee")
"""Order in which one of several proofs of an address is shown."""


def only_key(scope: ControlScope) -> str:
    """Return the name in stores of one address without what is below it."""
    return scope_key(scope.origin, "/".join(scope.segments) or scope.exact_url, "only")


@dataclass(frozen=True, slots=True)
class Statement:
    """A document's statement, and the addresses it covers."""

    proof: Proof
    scope: ControlScope
    named: NamedAgents
    is_ours: bool
    has_below: bool = True
    """Whether it also speaks for addresses below `scope`."""

    def speaks_for(self, service: ControlScope) -> bool:
        """Return whether it covers the service."""
        return self.scope.covers(service) if self.has_below else self.scope == service

    @property
    def key(self) -> str:
        """Return the name in stores of what is proven."""
        return self.scope.key if self.has_below else only_key(self.scope)


@dataclass(frozen=True, slots=True)
class ServiceControl:
    """The result of the control proof for one service."""

    endpoint: str
    scope: ControlScope | None
    proven: Statement | None = None
    rivals: tuple[str, ...] = ()
    """Agents (subject keys) with a proof of their own that contradicts this one."""
    why: str | None = None
    is_unfinished: bool = False
    is_lent: bool = False
    """Whether the proof is that of another address of the host: it leaves no key of its own."""

    def row(self, subject: Subject) -> JsonObject:
        """Return the service's row of the evidence; without a proof it says what to publish."""
        shown: dict[str, JsonValue] = {
            "service": self.endpoint.encode("utf-8", "replace").decode(),
            "proof": self.proven.proof if self.proven else None,
            "conflict": bool(self.rivals),
        }
        if self.rivals:
            shown["with"] = list(self.rivals)
        if self.proven:
            return shown
        if self.why:
            shown["why"] = self.why
        if self.is_unfinished:
            shown["unfinished"] = True
        what = instructions(subject, self.endpoint)
        if what is not None:
            shown["publish"] = what.as_json()
        return shown
