"""/openapi.json: complete enough to generate a client from (interface.md#versioning)."""

import gzip
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from assay import __version__
from assay.accounts.model import EMAIL_CHARS_MAX
from assay.app.web import openapi_document
from assay.playground.model import HEADERS_MAX
from assay.server.docs import accepts_gzip, yaml_lines
from assay.wrappers.endpoint_rules import (
    BODY_BYTES_CEILING,
    DESCRIPTION_CHARS_MAX,
    ORIGINS_MAX,
    RATE_LIMIT_MAX,
    SECRET_CHARS_MAX,
    TIMEOUT_MS_CEILING,
)
from assay.wrappers.matching import METHOD_CHARS_MAX, PATH_CHARS_MAX
from assay.wrappers.response_fields import EXCEPTIONS_MAX
from tests.support.live_service import OWNER_KEY, TestService, address

METHODS = {"get", "post", "patch", "put", "delete"}
Document = Mapping[str, Any]
SERVED_BYTES_MAX = 60_000
"""Of the document as it is sent, compressed."""


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


def resolved(document: Document, node: Any) -> Any:
    """What a reference refers to, or the node itself."""
    if "$ref" in node:
        found: Any = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return found
    return node


def parameters(document: Document) -> Iterator[tuple[str, Document]]:
    for item in document["paths"].values():
        for operation in item.values():
            for one in operation.get("parameters", ()):
                yield operation["operationId"], resolved(document, one)


def contents(document: Document) -> Iterator[tuple[str, Document]]:
    """Every body of a request or response, with a name of where it is."""
    for item in document["paths"].values():
        for operation in item.values():
            bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for status, body in bodies.items():
                for kind, content in resolved(document, body).get("content", {}).items():
                    yield f"{operation['operationId']} {status} {kind}", content


def invalid(document: Document, schema: Document, example: object) -> list[str]:
    rules = Draft202012Validator({**schema, "components": document["components"]})
    return [error.message for error in rules.iter_errors(example)]


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
        for status, one in operation["responses"].items():
            response = resolved(document, one)
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


async def test_every_property_and_parameter_is_described(document: Document) -> None:
    silent = {
        f"{name}.{member}"
        for name, schema in document["components"]["schemas"].items()
        for member, said in schema.get("properties", {}).items()
        if not said.get("description")
    }
    silent |= {
        f"{operation} {one['name']}"
        for operation, one in parameters(document)
        if not one.get("description")
    }
    assert silent == set()


async def test_every_body_has_an_example_that_its_schema_admits(document: Document) -> None:
    found = list(contents(document))
    assert len(found) > 900
    for where, content in found:
        assert "example" in content, where
        assert invalid(document, content["schema"], content["example"]) == [], where


async def test_every_example_of_a_property_is_admitted_by_its_schema(document: Document) -> None:
    for name, schema in document["components"]["schemas"].items():
        for member, said in schema.get("properties", {}).items():
            for example in said.get("examples", ()):
                assert invalid(document, said, example) == [], f"{name}.{member}"


async def test_examples_of_refusals_carry_a_code_of_their_status(document: Document) -> None:
    from_status = {status for _, _, one in operations(document) for status in one["responses"]}
    assert from_status >= {"400", "401", "403", "404", "409", "429", "503"}
    for name, response in document["components"]["responses"].items():
        example = response["content"]["application/json"]["example"]
        assert example["error"] == example["code"].lower(), name
        assert example["message"] == response["description"], name


async def test_what_is_needed_together_and_what_suffices_alone_is_told_apart(
    document: Document,
) -> None:
    """OpenAPI 3.1, section 4.8.30: keys of one object are needed together; objects are choices."""
    paths = document["paths"]
    gate = paths["/operator/gate/{agentId}"]["post"]["security"]
    assert gate == [{"operatorKey": [], "agentAddress": [], "agentSession": []}]
    webhooks = paths["/operator/webhooks"]["get"]["security"]
    assert webhooks == [{"operatorKey": []}, {"dashboardToken": []}]


async def test_an_importer_has_a_variable_of_its_own_for_the_key_and_for_the_token(
    document: Document,
) -> None:
    """Importers name variables by the type of a scheme, not by its name."""
    schemes = document["components"]["securitySchemes"]
    assert schemes["operatorKey"]["type"] != schemes["dashboardToken"]["type"]


async def test_an_agents_headers_are_parameters_wherever_they_are_a_credential(
    document: Document,
) -> None:
    """Importers send one scheme of several that are needed together."""
    named = [(operation, one["name"]) for operation, one in parameters(document)]
    for _, _, operation in operations(document):
        if any("agentSession" in needed for needed in operation["security"]):
            for header in ("x-agent-address", "x-agent-session"):
                assert (operation["operationId"], header) in named


async def test_limits_of_request_bodies_are_those_that_are_enforced(document: Document) -> None:
    schemas = document["components"]["schemas"]

    def limits(shape: str, member: str) -> Document:
        said = schemas[shape]["properties"][member]
        return said | next(iter(said.get("anyOf", ())), {})

    for shape in ("EndpointRequest", "EndpointPatch"):
        assert limits(shape, "path")["maxLength"] == PATH_CHARS_MAX
        assert limits(shape, "method")["maxLength"] == METHOD_CHARS_MAX
        assert limits(shape, "description")["maxLength"] == DESCRIPTION_CHARS_MAX
        assert limits(shape, "upstreamAuthSecret")["maxLength"] == SECRET_CHARS_MAX
        assert limits(shape, "rateLimit")["maximum"] == RATE_LIMIT_MAX
        assert limits(shape, "maxBodyBytes")["maximum"] == BODY_BYTES_CEILING
        assert limits(shape, "timeoutMs")["maximum"] == TIMEOUT_MS_CEILING
        assert limits(shape, "corsOrigins")["maxItems"] == ORIGINS_MAX
        assert limits(shape, "passResponseHeaders")["maxItems"] == EXCEPTIONS_MAX
    assert limits("RegisterRequest", "email")["maxLength"] == EMAIL_CHARS_MAX
    assert limits("ProxyRequest", "headers")["maxProperties"] == HEADERS_MAX


async def test_the_longest_path_that_the_document_admits_is_taken_and_a_longer_one_is_not(
    service: TestService, document: Document
) -> None:
    await service.operator()
    token = await service.token()
    body = document["paths"]["/operator/endpoints"]["post"]["requestBody"]
    asked = body["content"]["application/json"]["example"]
    asked = {n: asked[n] for n in ("method", "targetUrl")} | {"pricePerCall": 0}
    longest = document["components"]["schemas"]["EndpointRequest"]["properties"]["path"]
    for more, status in ((0, 200), (1, 400)):
        path = "/" + "a" * (longest["maxLength"] - 1 + more)
        answer = await service.http.post(
            "/operator/endpoints", json=asked | {"path": path}, headers=token
        )
        assert answer.status_code == status, answer.text


async def test_it_names_its_licence_and_the_version_of_the_product(document: Document) -> None:
    assert document["info"]["version"] == "1.0.0"  # of the interface
    assert document["info"]["x-product-version"] == __version__
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    assert all(tag["description"] for tag in document["tags"])


async def test_it_is_sent_compressed_within_its_bound_and_once_to_each_reader(
    service: TestService, document: Document
) -> None:
    assert len(gzip.compress((await _sent(service, "identity")).content)) < SERVED_BYTES_MAX
    answer = await _sent(service, "gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < SERVED_BYTES_MAX
    assert answer.headers["vary"].lower() == "accept-encoding"
    assert answer.json() == document
    tag = answer.headers["etag"]
    for known in (tag, f'"other", W/{tag}', "*"):
        again = await _sent(service, "gzip", **{"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert (await _sent(service, "gzip", **{"if-none-match": '"other"'})).status_code == 200
    plain = await _sent(service, "identity", **{"if-none-match": tag})
    assert plain.status_code == 200
    assert "content-encoding" not in plain.headers


async def _sent(service: TestService, accepted: str, **headers: str) -> Any:
    return await service.http.get("/openapi.json", headers={"accept-encoding": accepted, **headers})


async def test_yaml_has_the_same_content(service: TestService, document: Document) -> None:
    answer = await service.http.get("/openapi.yaml")
    assert answer.headers["content-type"] == "application/yaml"
    assert yaml.load(answer.text, yaml.CSafeLoader) == document


def test_yaml_reads_back_as_what_it_was_written_from() -> None:
    awkward = {
        "": [[], {}, [[1], {"a": [None, True, -0.5, "on"]}]],
        "no": "yes",
        'a: "b" #c\n\u2028': {"200": "- x", "é": "\t\x7f\u0085"},
    }
    assert yaml.safe_load("".join(yaml_lines(awkward))) == awkward


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("", False),
        ("identity", False),
        ("," * 5000 + "gzip", False),
    ],
)
def test_it_is_compressed_for_those_who_accept_it(accepted: str, is_compressed: bool) -> None:  # noqa: FBT001
    assert accepts_gzip(accepted) == is_compressed


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
