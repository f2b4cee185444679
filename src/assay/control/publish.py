"""Builds the file or the record that an owner publishes to prove control. Pure."""

import json
from dataclasses import dataclass

from assay.common.json import JsonObject, JsonValue
from assay.control.scope import scope_of
from assay.control.statements_in_documents import RECORD_AGENT
from assay.registries.subject import Subject

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
