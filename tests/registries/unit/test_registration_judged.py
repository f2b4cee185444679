"""What follows from a file: a placeholder is no claim, and every problem has a place."""

import json
from dataclasses import replace
from typing import Any

import pytest

from assay.registries.model import OnchainAgent
from assay.registries.registration import TYPE, parse_registration, problems_of
from tests.support.fakes.trust import onchain_agent


def agent(agent_id: str, claimed: object) -> OnchainAgent:
    registry = onchain_agent().network.agent_registry
    file: dict[str, Any] = {
        "type": TYPE,
        "name": "n",
        "description": "d",
        "image": "https://a.example/face.png",
        "services": [],
        "registrations": [{"agentId": claimed, "agentRegistry": registry}],
    }
    return replace(
        onchain_agent(agent_id), registration=parse_registration(json.dumps(file).encode())
    )


def test_the_placeholder_0_is_a_problem_of_every_agent_but_number_0() -> None:
    (problem,) = problems_of(agent("7", 0))
    assert problem.sentence == "registrations[0].agentId: found 0; expected 7, this agent's id."
    assert problems_of(agent("0", 0)) == ()
    assert problems_of(agent("7", 7)) == ()


@pytest.mark.parametrize("why", ["The agent has no token URI.", None])
def test_an_agent_without_a_file_has_that_as_its_problem(why: str | None) -> None:
    found = replace(onchain_agent(), registration=None, registration_problem=why)
    (problem,) = problems_of(found)
    assert problem.where == "tokenURI"
    assert problem.sentence.endswith("expected a registration file that anybody can read.")
