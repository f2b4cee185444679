import json
from typing import Any

import pytest

from assay.registries.model import ClaimedRegistration, Service
from assay.registries.registration import TYPE, NotRegistration, parse_registration
from assay.registries.registration_json import BYTES_MAX

REGISTRY = "0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
GOOD: dict[str, Any] = {
    "type": TYPE,
    "name": "Steady",
    "description": "Answers.",
    "image": "https://agent.example/face.png",
    "services": [
        {"name": "A2A", "endpoint": "https://agent.example/card.json", "version": "0.3.0"},
        {"name": "web", "endpoint": "https://agent.example/"},
    ],
    "x402Support": True,
    "active": True,
    "registrations": [{"agentId": 22, "agentRegistry": f"eip155:1:{REGISTRY}"}],
    "supportedTrust": ["reputation", "tee-attestation"],
}


def parsed(**changes: Any) -> Any:
    return parse_registration(json.dumps(GOOD | changes).encode())


def without(key: str, **changes: Any) -> Any:
    kept = {name: value for name, value in GOOD.items() if name != key}
    return parse_registration(json.dumps(kept | changes).encode())


def test_a_file_as_the_eip_writes_it_has_no_problems() -> None:
    found = parsed()
    assert found.problems == ()
    assert found.name == "Steady"
    assert found.services == (
        Service("A2A", "https://agent.example/card.json", "0.3.0"),
        Service("web", "https://agent.example/"),
    )
    assert found.registrations == (ClaimedRegistration("22", f"eip155:1:{REGISTRY}"),)
    assert found.trust_models == ("reputation", "tee-attestation")
    assert (found.x402_support, found.active) == (True, True)
    assert found.raw == GOOD


def test_the_older_key_for_services_is_understood() -> None:
    assert without("services", endpoints=GOOD["services"]).services == parsed().services
    assert parsed(services=None, endpoints=GOOD["services"]).services == parsed().services


def test_services_may_be_an_object_of_names() -> None:
    assert parsed(services={"MCP": "https://a.example/mcp"}).services == (
        Service("MCP", "https://a.example/mcp"),
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"x402support": True}, True),
        ({"x402": {"enabled": False}}, False),
        ({"x402": True}, None),
        ({"x402Support": "yes"}, None),
        ({}, None),
    ],
)
def test_x402_support_is_read_in_each_spelling(
    changes: dict[str, Any],
    expected: bool | None,  # noqa: FBT001 - a row of the table
) -> None:
    assert without("x402Support", **changes).x402_support is expected


def test_the_plural_of_supported_trust_is_understood() -> None:
    assert without("supportedTrust", supportedTrusts=["reputation"]).trust_models == ("reputation",)


@pytest.mark.parametrize(
    ("changes", "where", "found"),
    [
        ({"type": "other"}, "type", '"other"'),
        ({"name": ""}, "name", '""'),
        ({"description": 7}, "description", "the number 7"),
        ({"image": None}, "image", "null"),
        ({"services": 7}, "services", "the number 7"),
        ({"services": [{"name": "web"}]}, "services[0].endpoint", "nothing"),
        ({"services": ["https://a.example"]}, "services[0]", "https://a.example"),
        (
            {"services": [{"name": "web", "endpoint": "https://a.example/\u202e"}]},
            "services[0].endpoint",
            "https://a.example/",
        ),
        ({"services": [{"name": "web", "endpoint": "x" * 3000}]}, "services[0].endpoint", "xxx"),
        ({"registrations": 7}, "registrations", "the number 7"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    changes: dict[str, Any], where: str, found: str
) -> None:
    problems = parsed(**changes).problems
    assert len(problems) == 1
    assert problems[0].where == where
    assert found in problems[0].found
    assert problems[0].sentence.endswith(".")


def test_a_file_without_services_says_so() -> None:
    (problem,) = without("services").problems
    assert problem.sentence == (
        "services: found nothing; expected a list of objects, each with name and endpoint."
    )


def test_only_the_first_services_are_kept() -> None:
    many = [{"name": f"s{n}", "endpoint": f"https://a.example/{n}"} for n in range(100)]
    found = parsed(services=many)
    assert len(found.services) == 64
    (problem,) = found.problems
    assert (problem.where, problem.found) == ("services", "100 services")


def test_hidden_and_reordering_characters_are_not_shown() -> None:
    found = parsed(name="St\u202eead\u200by\x00\x1b\n!", description="a\u2066b\nc\x7f")
    assert found.name == "Steady !"
    assert found.description == "ab\nc"


def test_long_texts_are_cut() -> None:
    assert len(parsed(description="d" * 5000).description) == 2000


@pytest.mark.parametrize("agent_id", [True, None, 1.5, [], {}, ""])
def test_a_claim_without_an_id_is_no_claim(agent_id: object) -> None:
    assert parsed(registrations=[{"agentId": agent_id, "agentRegistry": "x"}]).registrations == ()


def test_an_id_beyond_a_float_is_kept_exactly() -> None:
    claims = parsed(registrations=[{"agentId": 2**256 - 1, "agentRegistry": "x"}]).registrations
    assert claims[0].agent_id == str(2**256 - 1)


def test_a_member_named_twice_is_a_problem_and_the_last_counts() -> None:
    text = json.dumps(GOOD)[:-1] + ', "name": "Other"}'
    found = parse_registration(text.encode())
    assert found.name == "Other"
    assert [one.found for one in found.problems] == ['the member "name" twice']


def test_a_byte_order_mark_is_no_obstacle() -> None:
    assert parse_registration(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()).name == "Steady"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b"[" * 100_000,
        b'{"a":' * 33 + b"1" + b"}" * 33,
        b'{"a": ' + b"9" * 5000 + b"}",
        b"[]",
        b"7",
        b"null",
        b'"text"',
        b'{"a": [' + b",".join([b"1"] * 20_000) + b"]}",
        b'{"a": "' + b"x" * BYTES_MAX + b'"}',
    ],
    ids=range(16),
)
def test_what_is_no_registration_file_is_refused_in_a_sentence(body: bytes) -> None:
    with pytest.raises(NotRegistration) as refused:
        parse_registration(body)
    assert str(refused.value).startswith("The document at the token URI ")
    assert str(refused.value).endswith(".")


def test_brackets_within_texts_are_no_nesting() -> None:
    assert parsed(description='[{"\\' * 200).problems == ()


@pytest.mark.parametrize("unit", ['\\"', '"', "\\", '"\\', '["'])
def test_a_text_that_never_ends_is_refused_in_no_time(unit: str) -> None:
    with pytest.raises(NotRegistration):
        parse_registration(b'{"' + unit.encode() * (BYTES_MAX // 2 - 10))
