"""What one document says of an address, and what follows for a service. Pure."""

from dataclasses import dataclass
from typing import Literal

from assay.common.json import JsonObject, JsonValue
from assay.control.publish import instructions
from assay.control.scope import ControlScope, scope_key
from assay.control.statements_in_documents import NamedAgents
from assay.registries.subject import Subject

Proof = Literal["dns", "well_known", "card", "openapi", "x402_payee"]

STRONGEST_FIRST: tuple[Proof, ...] = ("dns", "well_known", "card", "openapi", "x402_payee")
"""Which of several proofs of one address is shown."""


def only_key(scope: ControlScope) -> str:
    """Names one address without what is below it, in stores."""
    return scope_key(scope.origin, "/".join(scope.segments) or scope.exact_url, "only")


@dataclass(frozen=True, slots=True)
class Statement:
    """What one document says, and of which addresses."""

    proof: Proof
    scope: ControlScope
    named: NamedAgents
    is_ours: bool
    has_below: bool = True
    """Whether it speaks for what is below `scope`, too."""

    def speaks_for(self, service: ControlScope) -> bool:
        """Whether the service lies in what it speaks for."""
        return self.scope.covers(service) if self.has_below else self.scope == service

    @property
    def key(self) -> str:
        """Names what is proven, in stores."""
        return self.scope.key if self.has_below else only_key(self.scope)


@dataclass(frozen=True, slots=True)
class ServiceControl:
    """What was found out of one service."""

    endpoint: str
    scope: ControlScope | None
    proven: Statement | None = None
    rivals: tuple[str, ...] = ()
    """Agents (subject keys) with a proof of their own that contradicts this one."""
    why: str | None = None
    is_unfinished: bool = False
    is_lent: bool = False
    """The proof is that of another address of the host: it leaves no key of its own."""

    def row(self, subject: Subject) -> JsonObject:
        """The service's row of the evidence; without a proof it says what to publish."""
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
