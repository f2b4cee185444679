"""The members of a denial, built in one place for the gate, wrappers and the playground. Pure."""

from assay.common.json import JsonObject, JsonValue
from assay.gate.model import INSUFFICIENT_EVIDENCE, Decision
from assay.registries.registration import problems_of

PROBLEMS_SHOWN = 10


def denial(decision: Decision) -> JsonObject:
    """What speaks against the agent, first what counts most, and what would change that.

    `denialReason` is `insufficient_evidence` where nothing does, and too little is known.
    `scoreLow` and `scoreHigh` are the score had every check that was not made failed or passed,
    `rung` and `ceiling` how good the agent can be known to be.
    `reasons` and `improve` are the decision's explanation, `problems` those of the registration
    file, `didYouMean` the registered agents of the address that was judged as a key agent.
    """
    agent = decision.subject.agent
    problems: list[JsonValue] = [
        {"where": one.where, "found": one.found, "expected": one.expected}
        for one in (problems_of(agent) if agent else ())[:PROBLEMS_SHOWN]
    ]
    why = decision.explanation
    return {
        "agentId": decision.subject.agent_id,
        "tier": decision.grade.tier,
        "riskLevel": decision.grade.risk_level,
        "denialReason": decision.denial_reason,
        "score": decision.score.value,
        "scoreLow": decision.score.low,
        "scoreHigh": decision.score.high,
        "rung": decision.score.place.rung,
        "ceiling": decision.score.place.ceiling,
        "minScore": decision.min_score,
        "reasons": [*(why.reasons or decision.score.reasons)],
        "improve": [one.document() for one in why.improve],
        "problems": problems,
        "didYouMean": [
            {
                "agentId": agent_id,
                "chain": decision.subject.network.slug,
                "send": f"x-agent-id: {agent_id}",
            }
            for agent_id in decision.did_you_mean
        ],
    }


def denial_message(decision: Decision, asks: str) -> str:
    """The denial in one sentence; `asks` is who asks for the points."""
    grade, score = decision.grade.tier, decision.score.value
    said = f"This agent's grade is {grade} ({score:g} points)"
    lacks = decision.denial_reason == INSUFFICIENT_EVIDENCE
    known = " Nothing is known against it, but too little is known of it." if lacks else ""
    return f"{said}; {asks} asks for {decision.min_score:g} points.{known}"
