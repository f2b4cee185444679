"""Whom a call is counted for."""

from assay.analytics.model import CallKind


def test_a_call_is_counted_for_its_agent_else_for_who_paid() -> None:
    def source(agent_id: str | None, payer: str | None) -> CallKind:
        return CallKind("op", "w", "GET", "/", agent_id=agent_id, payer=payer)

    assert source("7", "0xa").agent == "7"
    assert source(None, "0xa").agent == "0xa"
    assert source(None, None).agent is None
