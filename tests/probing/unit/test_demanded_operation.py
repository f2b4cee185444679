"""What a 402 says that a call takes. Pure."""

import base64
import json
from typing import Any

import pytest

from assay.net.egress.ports import EgressResponse
from assay.probing.function.described_operations import demanded_operation

URL = "https://desk.example/divisors"


def demand(document: Any, *, in_header: bool = False) -> EgressResponse:
    body = json.dumps(document).encode()
    packed = (("payment-required", base64.b64encode(body).decode()),)
    return EgressResponse(402, packed if in_header else (), b"" if in_header else body, False, 1.0)  # noqa: FBT003 - its own order


def newer(described: Any, schema: Any = None, about: str = "The divisors of a number") -> Any:
    made = {"info": {"input": described}, "schema": {"properties": {"input": schema or {}}}}
    return {
        "x402Version": 2,
        "resource": {"url": URL, "description": about},
        "accepts": [],
        "extensions": {"bazaar": made},
    }


@pytest.mark.parametrize("in_header", [False, True])
def test_an_example_of_the_extension_is_a_value_of_its_schema(in_header: bool) -> None:  # noqa: FBT001 - a row
    shape = {"properties": {"queryParams": {"properties": {"number": {"type": "integer"}}}}}
    given = newer({"type": "http", "method": "GET", "queryParams": {"number": 60}}, shape)
    found = demanded_operation(demand(given, in_header=in_header), URL)
    assert found is not None
    assert (found.method, found.path, found.places) == ("GET", "/divisors", {"number": "query"})
    assert found.schema["properties"] == {"number": {"type": "integer", "examples": [60]}}


def test_a_body_and_version_1_are_read_too() -> None:
    body = newer({"method": "POST", "bodyType": "json", "body": {"number": 60}})
    found = demanded_operation(demand(body), URL)
    assert found is not None
    assert (found.method, found.places) == ("POST", {"number": "body"})
    row = {"outputSchema": {"input": {"method": "GET", "queryParams": {"city": "string"}}}}
    old = {"x402Version": 1, "accepts": [{**row, "description": "The height of a city"}]}
    found = demanded_operation(demand(old), URL)
    assert found is not None
    assert found.schema["properties"] == {"city": {"type": "string"}}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (newer({"queryParams": {"to": "a"}}, about="Sends a mail"), "https://desk.example/send"),
        (newer({"method": "POST", "body": {"to": "a"}}, about="Books a table"), URL),
        (newer({"method": "DELETE", "queryParams": {"id": "1"}}), URL),
        (newer({"queryParams": {}}), URL),
        (newer({"queryParams": [1]}), URL),
        (newer([]), URL),
        ({"accepts": [7]}, URL),
        ({"accepts": [{"outputSchema": None}]}, URL),
        ([], URL),
        (None, URL),
    ],
)
def test_acts_and_what_says_nothing_are_no_operation(given: Any, url: str) -> None:
    assert demanded_operation(demand(given), url) is None
