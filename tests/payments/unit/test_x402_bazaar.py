"""What a 402 says for catalogues is valid for the reference library, however it was sold."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from x402.extensions.bazaar import extract_discovery_info, validate_discovery_extension
from x402.extensions.bazaar.facilitator import validate_discovery_extension_spec
from x402.schemas import PaymentPayload, PaymentRequired

from assay.common.json import is_nested_beyond
from assay.payments.model import Quote
from assay.payments.networks import payment_networks
from assay.payments.x402.bazaar import BYTES_MAX, described
from assay.payments.x402.codec import DEPTH_MAX, encoded, parse, required_v2
from assay.wrappers.matching import BadPath, check_pattern

METHODS = ("GET", "HEAD", "DELETE", "POST", "PUT", "PATCH")
SOLD = Quote(
    wrapper_id="w",
    operator_id="op1",
    url="https://svc.example/wrap/op1/quote",
    method="GET",
    path="/wrap/op1/quote",
    query="",
    description="The price of gold",
    network=payment_networks({})["eip155:8453"],
    amount=10_000,
    pay_to="0x" + "5e" * 20,
    work_s=1,
    settles_first=False,
    route="/quote",
)


def sold(route: str, path: str, method: str = "GET", base: str = "https://svc.example") -> Quote:
    below = f"/wrap/op1{path}"
    return replace(SOLD, url=base + below, path=below, route=route, method=method)


def payment_for(required: dict[str, Any]) -> dict[str, Any]:
    """A payment as a client makes it: with what it repeats of the 402."""
    authorization = {
        **dict.fromkeys(("from", "to"), "0x" + "11" * 20),
        **dict.fromkeys(("value", "validAfter", "validBefore"), "1"),
        "nonce": "0x" + "22" * 32,
    }
    payload = {"signature": "0x" + "33" * 65, "authorization": authorization}
    asked = PaymentRequired.model_validate(required)
    made = PaymentPayload(
        x402_version=2,
        payload=payload,
        accepted=asked.accepts[0],
        resource=asked.resource,
        extensions=asked.extensions,
    )
    return made.model_dump(by_alias=True, exclude_none=True)


def listed(quote: Quote) -> Any:
    """What the reference library lists of a payment for this call; None for nothing."""
    payment = payment_for(json.loads(json.dumps(required_v2(quote, "payment_required"))))
    return extract_discovery_info(payment, payment["accepted"])


@pytest.mark.parametrize("method", METHODS)
def test_a_call_of_each_method_is_listed_as_it_is_sold(method: str) -> None:
    found = listed(sold("/quote", "/quote", method))
    assert (found.resource_url, found.method) == ("https://svc.example/wrap/op1/quote", method)
    assert found.description == "The price of gold"
    assert found.route_template is None
    (extension,) = described(sold("/quote", "/quote", method)).values()
    assert validate_discovery_extension_spec(extension).valid


@pytest.mark.parametrize(
    ("route", "path", "template", "parameters"),
    [
        ("/items/{id}", "/items/7", "/items/:id", {"id": "7"}),
        ("/{a}/x/{b_2}", "/1/x/a%2Fb", "/:a/x/:b_2", {"a": "1", "b_2": "a%2Fb"}),
        ("/files/*", "/files/a/b.txt", "/files/:rest", {"rest": "a/b.txt"}),
        ("/*", "/", "/:rest", {"rest": ""}),
        ("/{id}/v1:run", "/7/v1:run", "/:id/v1%3Arun", {"id": "7"}),
        ("/{id}/a$b", "/7/a$b", "/:id/a%24b", {"id": "7"}),
        ("/{a}/{b}", "/1%2F2", "/:a/:b", {"a": "1%2F2"}),
    ],
)
@pytest.mark.parametrize("base", ["https://svc.example", "https://svc.example/trust/v1"])
def test_calls_of_one_route_are_listed_once(
    route: str, path: str, template: str, parameters: dict[str, str], base: str
) -> None:
    found = listed(sold(route, path, base=base))
    assert found.route_template == base.removeprefix("https://svc.example") + f"/wrap/op1{template}"
    assert found.resource_url == f"{base}/wrap/op1{template}"
    assert found.discovery_info.input.path_params == parameters


@pytest.mark.parametrize(
    "quote",
    [
        replace(SOLD, route=""),
        replace(SOLD, method="REPORT"),
        replace(SOLD, method="get"),
        sold("/{id}/a..b", "/7/a..b"),
        sold("/{id}", "/" + "7" * BYTES_MAX),
        sold("/" + "a" * BYTES_MAX + "/{id}", "/a/7"),
    ],
)
def test_what_the_extension_has_no_form_for_is_not_listed(quote: Quote) -> None:
    assert described(quote) == {}
    assert required_v2(quote, "payment_required")["extensions"] == {}
    assert listed(quote) is None


SEGMENTS = st.from_regex(
    r"[A-Za-z0-9._~!$&'()+,;=:@-]{1,8}|\{[A-Za-z_][A-Za-z0-9_]{0,5}\}|", fullmatch=True
)
ROUTES = st.builds(
    lambda parts, end: "/" + "/".join([*parts, *end]),
    st.lists(SEGMENTS, max_size=5),
    st.sampled_from([(), ("*",)]),
)
PATHS = st.from_regex(r"(/[A-Za-z0-9._~!$&'()+,;=:@%-]{0,12}){1,8}", fullmatch=True)


@given(ROUTES, PATHS, st.sampled_from(METHODS))
def test_no_route_or_path_makes_a_description_that_a_catalogue_refuses(
    route: str, path: str, method: str
) -> None:
    try:
        check_pattern(route)
    except BadPath:
        return
    quote = sold(route, path, method)
    for extension in described(quote).values():
        assert len(json.dumps(extension)) <= BYTES_MAX
        assert validate_discovery_extension(extension).valid  # type: ignore[arg-type]
        found = listed(quote)
        assert found.method == method
        assert (found.route_template is not None) == ("{" in route or route.endswith("*"))


def test_a_payment_that_repeats_the_description_is_read() -> None:
    quote = sold("/{a}/{b}/{c}/*", "/1/2/3/4")
    text = json.dumps(payment_for(json.loads(json.dumps(required_v2(quote, "x")))))
    assert not is_nested_beyond(text.encode(), DEPTH_MAX)
    assert parse(encoded(json.loads(text))).identifier is None
    assert len(base64.b64encode(text.encode())) < 4096
