"""What a document says about an address, and the document to publish. Pure.

Builds the file or the record that an owner publishes to prove control.

A document's statement about an address, and its result for a service.
"""

import json
from dataclasses import dataclass
from typing import Literal

from assay.common.json import (
    JsonObject,
    JsonValue,
)
from assay.control.scope import ControlScope, scope_key, scope_of
from assay.control.statements_in_documents import RECORD_AGENT, NamedAgents
from assay.registries.model import Subject

WELL_KNOWN = "/.well-known/agent-registration.json"
"""Source: EIP-8004, "Endpoint Domain Verification"."""

RECORD_LABEL = "_agent-registration"
"""A label below the host, so that a record of the host itself (SPF) is not mixed in."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """The file and the record; either suffices. `record_name` is None for a host without DNS."""

    file_url: str
    file_text: str
    record_name: str | None
    record_text: str | None

    def as_json(self) -> JsonObject:
        """Return `{"file": {"url", "body"}, "record": {"name", "type", "value"}}`."""
        shown: dict[str, JsonValue] = {"file": {"url": self.file_url, "body": self.file_text}}
        if self.record_name is not None:
            record = {"name": self.record_name, "type": "TXT", "value": self.record_text}
            shown["record"] = record
        return shown


def instructions(subject: Subject, endpoint: str) -> Instructions | None:
    """Return the exact file and TXT record that prove control of the host of `endpoint`.

    None for an endpoint that is not a web address.
    """
    scope = scope_of(endpoint)
    if scope is None:
        return None
    registry, agent_id = subject.network.agent_registry, subject.agent_id
    shown = int(agent_id) if agent_id.isdigit() else agent_id
    row = {"agentId": shown, "agentRegistry": registry}
    text = json.dumps({"registrations": [row]}, indent=2)
    url = scope.shown_origin + WELL_KNOWN
    if not scope.has_name:
        return Instructions(url, text, None, None)
    name = f"{RECORD_LABEL}.{scope.host}"
    return Instructions(url, text, name, f"{RECORD_AGENT}{registry}/{agent_id}")


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
