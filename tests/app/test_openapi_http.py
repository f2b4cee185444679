"""/openapi.json: complete enough to generate a client from (interface.md#versioning)."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from assay.app.web import openapi_document
from tests.support.live_service import OWNER_KEY, TestService, address

METHODS = {"get", "post", "patch", "put", "delete"}
Document = Mapping[str, Any]


@pytest.fixture
async def document(service: TestService) -> Document:
    return (await service.http.get("/openapi.json")).json()


def success(operation: Document) -> Document:
    """The one answer of an operation that is no refusal."""
    (found,) = (r for status, r in operation["responses"].items() if status[0] == "2")
    return found


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Ours: what is answered below /wrap/ is the upstreams'."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert method in METHODS
            if not path.startswith("/wrap/"):
                yield method, path, operation


def references(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


async def test_it_is_the_document_the_command_prints(
    service: TestService, document: Document
) -> None:
    assert openapi_document(service.app) == document
    assert document["openapi"] == "3.1.0"
    assert document["servers"] == [{"url": service.app.settings.address}]


async def test_everything_it_refers_to_is_in_it(document: Document) -> None:
    for reference in set(references(document)):
        node: Any = document
        for step in reference.removeprefix("#/").split("/"):
            assert step in node, reference
            node = node[step]


async def test_every_operation_is_named_told_and_filed(document: Document) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names))
    for _, path, operation in operations(document):
        assert set(operation["tags"]) <= tags, path
        assert operation["summary"], path
        assert operation["description"], path
        assert success(operation), path


async def test_every_refusal_is_the_one_envelope(document: Document) -> None:
    for _, path, operation in operations(document):
        for status, response in operation["responses"].items():
            assert response["headers"].keys() >= {"x-request-id", "ratelimit-limit"}
            if status[0] == "2" and "application/json" not in response["content"]:
                continue  # a file
            if status == "304":
                continue  # no content
            schema = response["content"]["application/json"]["schema"]
            enveloped = schema == {"$ref": "#/components/schemas/ErrorResponse"}
            assert enveloped == (status[0] != "2"), path


async def test_every_schema_it_needs_a_credential_for_is_declared(document: Document) -> None:
    declared = set(document["components"]["securitySchemes"])
    for _, path, operation in operations(document):
        for needed in operation["security"]:
            assert set(needed) <= declared, path


async def test_where_a_session_begins_its_header_is_named(document: Document) -> None:
    begins = {
        operation["operationId"]
        for _, _, operation in operations(document)
        if "x-agent-session" in success(operation)["headers"]
    }
    visits = {"enrol_agent", "withdraw_agent", "list_enrolments"}
    visits |= {"deposit_credential", "list_credentials", "delete_credential"}
    checks = {"check_gate", "check_gate_policy", "explain_refusal"}
    others = {"verify", "gate", "end_session", "attestation", "enter_course"}
    assert begins == {*others, *visits, *checks}


async def test_request_bodies_are_closed(document: Document) -> None:
    for _, path, operation in operations(document):
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            shape = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
            assert shape["additionalProperties"] is False, path


async def test_the_examples_of_a_new_account_open_one(
    service: TestService, document: Document
) -> None:
    """What a reader of the reference copies must work."""
    members = document["components"]["schemas"]["RegisterRequest"]["properties"]
    body = {n: member["examples"][0] for n, member in members.items() if "examples" in member}
    assert (await service.http.post("/operator/register", json=body)).status_code == 200


async def test_answers_have_the_members_the_document_says(
    service: TestService, document: Document
) -> None:
    key = await service.operator()
    path = f"/operator/key/{address(OWNER_KEY)}"
    answer = (await service.http.get(path, headers=key)).json()
    shape = document["components"]["schemas"]["KeyProfileResponse"]
    assert answer.keys() == shape["properties"].keys()
