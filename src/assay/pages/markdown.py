"""Pages as Markdown, for agents that read. Strangers' texts are escaped and stay on their line."""

import re
from collections.abc import Iterator

from assay.evaluation.schemas_public import (
    AgentHistoryResponse,
    ListedAgentsResponse,
    PublicReportResponse,
)
from assay.pages.views import PARTS, minute, signed

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&:])")


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def listed(found: ListedAgentsResponse, address: str) -> str:
    """Return a page of the list as a table."""
    lines = [
        "# Evaluated agents",
        "",
        "| grade | score | agent | last visit |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {one.tier} | {one.score:.1f} | [{plain(one.name or 'Agent ' + one.agent_id)}]"
        f"({address}/agents/{one.chain}/{one.agent_id}) | {minute(one.evaluated_at)} |"
        for one in found.items
    ]
    if found.next_cursor is not None:
        lines += ["", f"Next page: cursor={found.next_cursor}"]
    return "\n".join(lines) + "\n"


def report(found: PublicReportResponse, past: AgentHistoryResponse, address: str) -> str:
    """Return a report."""
    return "\n".join(_report(found, past, address)) + "\n"


def _report(found: PublicReportResponse, past: AgentHistoryResponse, address: str) -> Iterator[str]:
    yield f"# {plain(found.name or 'Agent ' + found.agent_id)}: {found.tier}"
    yield ""
    bound = "" if found.ladder is None else plain(found.ladder.reason)
    yield f"Score {found.score:.1f} of 100. {bound}"
    yield ""
    yield f"- Agent {plain(found.agent_id)} on {found.chain}, registry {plain(found.registry)}"
    yield f"- Evaluated {minute(found.evaluated_at)}, valid until {minute(found.valid_until)}"
    yield f"- Says of itself: {plain(found.description) or 'nothing'}"
    yield from (f"- {plain(one.name)}: {plain(one.endpoint)}" for one in found.services)
    yield from ("", "## How the score adds up", "")
    yield from (f"- {PARTS.get(one.name, one.name)} {signed(one.points)}" for one in found.parts)
    if found.improve:
        yield from ("", "## What would raise it", "")
        yield from (f"- {signed(one.points)}: {plain(one.action)}" for one in found.improve)
    yield from ("", "## Findings", "")
    for one in found.checks:
        fix = f" Fix: {plain(one.fix)}" if one.fix else ""
        yield f"- {one.outcome}, {one.severity}: `{one.name}`. {plain(one.note)}{fix}"
    yield from ("", "## History", "")
    for entry in past.items:
        why = " ".join(entry.reasons) or "Nothing changed."
        yield f"- {minute(entry.evaluated_at)}: {entry.tier} ({entry.score:.1f}). {plain(why)}"
    yield from ("", "## Verify", "")
    yield f"- Snapshot {found.snapshot.snapshot_hash}, after {found.snapshot.previous_hash}"
    yield f"- JSON: {address}/operator/agent/{found.agent_id}/report?chain={found.chain}"
