"""`assay check`: every kind of target, on real servers, in every form of report."""

import json
from typing import Any
from xml.etree import ElementTree as ET

from jsonschema import Draft202012Validator

from assay.cli.check import FORMATS, Report
from assay.evaluation.behaviour import findings
from assay.evaluation.unregistered import UnregisteredAgent
from tests.support.fakes.agents import registration_file, running
from tests.support.fakes.working_agents import CONVERT, a2a_app, converts, serving
from tests.support.live_service import TestService

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
SARIF = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "shortDescription": TEXT,
                                                "help": TEXT,
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                    "properties": {"type": "object"},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "locations": {"type": "array", "items": {"type": "object"}},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The part of the SARIF 2.1.0 schema that concerns what is written. Source: OASIS, sarif-2.1.0."""


async def evaluated(
    service: TestService, target: str, name: str | None = None
) -> UnregisteredAgent:
    return await service.app.unregistered.evaluate(target, 20.0, name)


async def evaluated_service(
    service: TestService, kind: str, name: str | None = None
) -> UnregisteredAgent:
    async with running() as agent:
        return await evaluated(service, agent.services[kind], name)


def names(found: UnregisteredAgent) -> list[str]:
    return [service.name for service in found.services]


def report_of(service: TestService, found: UnregisteredAgent, min_score: float) -> Report:
    return Report(
        "agent.json", found, findings(found.behaviour.evidence, service.app.probes), min_score
    )


async def test_a_card_is_evaluated_as_an_a2a_agent(service: TestService) -> None:
    found = await evaluated_service(service, "A2A")
    assert names(found) == ["A2A"]
    assert found.behaviour.evidence.data["status"] == "tested"


async def test_an_mcp_server_is_known_by_asking(service: TestService) -> None:
    found = await evaluated_service(service, "MCP")
    assert names(found) == ["MCP"]
    assert found.problems == ()
    assert "mcp_initialize" in str(found.behaviour.evidence.data["probes"])


async def test_a_site_is_taken_as_one(service: TestService) -> None:
    assert names(await evaluated_service(service, "web", "web")) == ["web"]


async def test_a_file_is_evaluated_with_what_is_wrong_with_it(service: TestService) -> None:
    async with running() as agent:
        file: dict[str, Any] = {**registration_file(agent, "7", "eip155:1:0x1"), "image": None}
        found = await evaluated(service, json.dumps(file))
    assert {"A2A", "MCP"} <= set(names(found))
    assert "image" in {one.where for one in found.problems}
    probes = found.behaviour.evidence.data["probes"]
    assert isinstance(probes, dict)
    assert not {"registration_names_agent", "wallet_matches_chain"} & probes.keys()
    assert found.score.value >= 95 or found.why.improve

    report = report_of(service, found, 100.0)
    assert not report.passes
    assert report_of(service, found, 0.0).passes
    told = json.loads(FORMATS["json"](report))
    assert told["score"] == found.score.value
    assert told["meetsThreshold"] is False
    log = json.loads(FORMATS["sarif"](report))
    Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in run["results"])
    assert any(one["ruleId"] == "registration_problem" for one in run["results"])
    suite = ET.fromstring(FORMATS["junit"](report)).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases)
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
    assert cases[-1].attrib["name"] == "threshold"
    assert "does not reach 100" in FORMATS["text"](report)


async def test_the_threshold_is_held_against_the_score_before_ceilings(
    service: TestService,
) -> None:
    """Nobody who is not registered can prove control: the rung's ceiling says nothing of them."""
    async with serving(a2a_app(converts, CONVERT)) as base:
        found = await evaluated(service, f"{base}/.well-known/agent-card.json")
    score = found.score
    assert (score.place.rung, score.value) == (0, min(64.0, score.before_ceiling))
    assert score.before_ceiling >= 65
    report = report_of(service, found, 65.0)
    assert report.passes
    assert "cannot be proven for an agent that is not registered" in " ".join(
        report.verdict.split()
    )
    told = json.loads(FORMATS["json"](report))
    assert (told["meetsThreshold"], told["heldAgainst"]) == (True, "scoreBeforeCeiling")
    assert told["scoreBeforeCeiling"] == score.before_ceiling
    assert not any("agentId" in str(one.cause.action) for one in found.why.improve)


async def test_nothing_at_an_address_is_no_good_grade(service: TestService) -> None:
    found = await evaluated(service, "http://127.0.0.1:9/")
    assert found.behaviour.evidence.data["status"] == "inconclusive"
    assert found.score.value < 65
    assert found.why.improve
