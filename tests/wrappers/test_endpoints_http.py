"""An operator's wrappers over HTTP: every field and rule of interface.md#wrapper-body."""

import json
from typing import Any

import pytest

from tests.support.live_service import TestService, refused

GOOD = {"path": "/quote", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:8999/v1"}
PAYOUT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


async def create(service: TestService, token: dict[str, str], **fields: Any) -> Any:
    body = {k: v for k, v in {**GOOD, **fields}.items() if v is not ...}
    return await service.http.post("/operator/endpoints", json=body, headers=token)


@pytest.fixture
async def token(service: TestService) -> dict[str, str]:
    await service.operator()
    return await service.token()


async def test_the_earlier_short_form_has_every_default(
    service: TestService, token: dict[str, str]
) -> None:
    answer = await create(service, token, method="GET", description="d", rateLimit=None)
    assert answer.status_code == 200
    assert answer.json() | {"id": "", "createdAt": ""} == {
        "id": "",
        "path": "/quote",
        "method": "GET",
        "pricePerCall": "0.000000",
        "description": "d",
        "rateLimit": None,
        "targetUrl": "http://127.0.0.1:8999/v1",
        "paymentProtocol": "x402",
        "paymentNetwork": "eip155:8453",
        "payoutAddress": None,
        "trustEnabled": False,
        "minScore": 65.0,
        "coldStart": None,
        "identityProof": "required",
        "settle": "after",
        "maxBodyBytes": 10485760,
        "timeoutMs": 30000,
        "upstreamAuthType": "none",
        "upstreamAuthHeader": None,
        "passResponseHeaders": [],
        "corsOrigins": [],
        "pricing": [],
        "freeQuota": None,
        "enforce": "enforce",
        "active": True,
        "createdAt": "",
        "revision": 1,
        "warnings": [],
    }


async def test_the_earlier_form_may_leave_out_where_to_forward(
    service: TestService, token: dict[str, str]
) -> None:
    """A path with a price, as the earlier form had it: listed, answered by nobody.

    Source: interface.md#the-earlier-wrapper-form.
    """
    made = await create(service, token, targetUrl=..., pricePerCall=0.25, rateLimit=3)
    assert made.status_code == 200, made.text
    shown = made.json()
    assert shown["warnings"] == []
    assert (shown["targetUrl"], shown["pricePerCall"], shown["active"]) == ("", "0.250000", True)
    assert (await service.http.get("/operator/endpoints", headers=token)).json() == [shown]
    url = f"/wrap/{await operator_id(service, token)}/quote"
    refused(await service.http.get(url), 404, "wrapper_not_found")
    refused(await service.http.get(url, headers={"x-payment": "e30="}), 404, "wrapper_not_found")
    refused(await create(service, token), 409, "endpoint_overlaps")
    gone = await service.http.delete(f"/operator/endpoints/{shown['id']}", headers=token)
    assert gone.json()["active"] is False


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("paymentProtocol", "x402"),
        ("paymentNetwork", "eip155:8453"),
        ("payoutAddress", PAYOUT),
        ("trustEnabled", False),
        ("upstreamAuthType", "none"),
        ("settle", "after"),
        ("minScore", 65),
        ("coldStart", None),
    ],
)
async def test_the_present_form_says_where_to_forward(
    service: TestService, token: dict[str, str], field: str, value: Any
) -> None:
    fields = {"targetUrl": ..., field: value}
    body = refused(await create(service, token, **fields), 400, "invalid_request")
    assert [row["loc"] for row in body["details"]] == [["body", "targetUrl"]]


async def test_a_path_with_nowhere_to_forward_is_not_answered_by_a_wider_wrapper(
    service: TestService, token: dict[str, str]
) -> None:
    """Else what is registered with a price could be had by the terms of another wrapper."""
    assert (await create(service, token, targetUrl=..., pricePerCall=1)).status_code == 200
    assert (await create(service, token, path="/*")).status_code == 200
    url = f"/wrap/{await operator_id(service, token)}"
    refused(await service.http.get(f"{url}/quote"), 404, "wrapper_not_found")
    refused(await service.http.get(f"{url}/other"), 502, "wrapper_request_failed")  # nobody listens


async def test_every_field_is_kept_and_the_secret_is_never_shown(
    service: TestService, token: dict[str, str]
) -> None:
    fields = {
        "method": "post",
        "pricePerCall": 0.123456,
        "rateLimit": 5,
        "paymentProtocol": "mpp",
        "paymentNetwork": "tempo:42431",
        "payoutAddress": PAYOUT,
        "trustEnabled": True,
        "minScore": 80,
        "coldStart": "throttle",
        "identityProof": "asserted",
        "settle": "before",
        "maxBodyBytes": 5,
        "timeoutMs": 10,
        "upstreamAuthType": "header",
        "upstreamAuthHeader": "X-Key",
        "upstreamAuthSecret": "hunter2hunter2",
    }
    made = await create(service, token, **fields)
    assert made.status_code == 200, made.text
    listed = await service.http.get("/operator/endpoints", headers=token)
    assert listed.json() == [made.json()]
    (warned,) = made.json()["warnings"]
    assert "No node of tempo:42431 answers" in warned
    shown = made.json()
    assert shown["method"] == "POST"
    assert shown["pricePerCall"] == "0.123456"
    assert shown["payoutAddress"] == PAYOUT.lower()
    assert shown["upstreamAuthHeader"] == "x-key"
    assert "hunter2" not in listed.text + made.text
    [config] = await service.app.endpoints.list(await operator_id(service, token))
    assert config.auth is not None
    assert b"hunter2" not in config.auth.sealed_secret
    assert service.app.endpoints.upstream_secret(config) == b"hunter2hunter2"


WRONG: list[tuple[str, Any]] = [
    ("path", ...),
    ("path", "quote"),
    ("path", "/a/../b"),
    ("path", "/a?b"),
    ("path", 5),
    ("method", "TRACE"),
    ("method", "G T"),
    ("pricePerCall", ...),
    ("pricePerCall", -0.01),
    ("pricePerCall", 0.0000001),
    ("pricePerCall", 100.01),
    ("pricePerCall", "free"),
    ("pricePerCall", 0.01),  # nobody to be paid
    ("targetUrl", ""),
    ("targetUrl", "ftp://a.example"),
    ("targetUrl", "http://u:p@a.example/"),
    ("targetUrl", "http://a.example/?q"),
    ("targetUrl", "http://169.254.169.254/"),
    ("rateLimit", 0),
    ("rateLimit", -1),
    ("rateLimit", 1.5),
    ("paymentProtocol", "cash"),
    ("paymentNetwork", "eip155:1"),
    ("paymentNetwork", "tempo:4217"),  # not x402's
    ("payoutAddress", "0x12"),
    ("payoutAddress", "0x" + "00" * 20),
    ("minScore", 101),
    ("coldStart", "maybe"),
    ("identityProof", "no"),
    ("settle", "never"),
    ("maxBodyBytes", -1),
    ("timeoutMs", 0),
    ("upstreamAuthType", "basic"),
    ("upstreamAuthSecret", "s"),
    ("description", "\x00"),
    ("unknown", 1),
]


async def test_what_does_not_hold_is_refused_with_its_place(
    service: TestService, token: dict[str, str]
) -> None:
    for field, value in WRONG:
        answer = await create(service, token, **{field: value})
        assert answer.status_code == 400, (field, value, answer.text)
        assert refused(answer, 400, "invalid_request")["details"], (field, value)
    listed = await service.http.get("/operator/endpoints", headers=token)
    assert listed.json() == []


@pytest.mark.parametrize(
    ("price", "shown"),
    [
        ("1.0000000000000000000000001", None),
        ("0.10000000000000000001", None),
        ("99.99999999999999999999", None),
        ("100.00000000000000000001", None),
        ("1e-7", None),
        ("1E-400", None),
        ("1e-99999999999999999999999", None),
        ("1e400", None),
        ("1e99999999999999999999999", None),
        ("-0.0000000000000000000000001", None),
        ("1" * 5000, None),
        ("0." + "1" * 5000, None),
        ("NaN", None),
        ('"1.0000000000000000000000001"', None),
        ("0.10000000000000000000", "0.100000"),
        ("12345.6e-3", "12.345600"),
        ("1e1", "10.000000"),
        ("-0.0", "0.000000"),
        ("2", "2.000000"),
        ('"0.25"', "0.250000"),
        ('0.5, "pricePerCall": 0.75', "0.750000"),
    ],
)
async def test_a_price_is_read_to_its_last_digit(
    service: TestService, token: dict[str, str], price: str, shown: str | None
) -> None:
    """As a double, a price that no asset can express passed for a round one."""
    rest = json.dumps({**GOOD, "payoutAddress": PAYOUT})[1:].replace('"pricePerCall": 0, ', "")
    answer = await service.http.post(
        "/operator/endpoints", content=f'{{"pricePerCall": {price}, {rest}', headers=token
    )
    if shown is None:
        refused(answer, 400, "invalid_request")
    else:
        assert answer.status_code == 200, answer.text
        assert answer.json()["pricePerCall"] == shown


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        ("Host", "x"),
        ("content-length", "1"),
        ("bad name", "x"),
        ("X-Assay-Tier", "AAA"),
        ("x-forwarded-for", "203.0.113.1"),
        ("Via", "1.1 x"),
        ("x", "a\r\nb: c"),
        ("x", ""),
        (None, "s"),
    ],
)
async def test_an_upstream_header_cannot_break_the_request(
    service: TestService, token: dict[str, str], header: str | None, secret: str
) -> None:
    fields = {"upstreamAuthType": "header", "upstreamAuthHeader": header}
    refused(
        await create(service, token, **fields, upstreamAuthSecret=secret), 400, "invalid_request"
    )


async def test_two_wrappers_of_one_path_and_method_cannot_be(
    service: TestService, token: dict[str, str]
) -> None:
    assert (await create(service, token, path="/a/{x}")).status_code == 200
    refused(await create(service, token, path="/a/{y}"), 409, "endpoint_overlaps")
    assert (await create(service, token, path="/a/{y}", method="POST")).status_code == 200
    assert (await create(service, token, path="/a/b")).status_code == 200


async def test_a_deactivated_wrapper_is_listed_and_its_path_is_free_again(
    service: TestService, token: dict[str, str]
) -> None:
    made = (await create(service, token)).json()
    gone = await service.http.delete(f"/operator/endpoints/{made['id']}", headers=token)
    assert gone.json() == {"ok": True, "id": made["id"], "active": False}
    assert (await create(service, token)).status_code == 200
    listed = (await service.http.get("/operator/endpoints", headers=token)).json()
    assert [one["active"] for one in listed] == [True, False]


async def test_the_wrappers_of_others_are_not_there(
    service: TestService, token: dict[str, str]
) -> None:
    made = (await create(service, token)).json()
    await service.operator("other@example.com")
    other = await service.token("other@example.com")
    assert (await service.http.get("/operator/endpoints", headers=other)).json() == []
    answer = await service.http.delete(f"/operator/endpoints/{made['id']}", headers=other)
    refused(answer, 404, "endpoint_not_found")
    assert (await create(service, other)).status_code == 200  # the same path, another operator's


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_a_dashboard_token_or_a_key_with_the_scope_there_is_nothing(
    service: TestService, method: str
) -> None:
    key = await service.operator()
    for headers, status, code in (({}, 401, "unauthorized"), (key, 403, "insufficient_scope")):
        answer = await service.http.request(
            method, "/operator/endpoints", headers=headers, content=json.dumps(GOOD)
        )
        refused(answer, status, code)


async def operator_id(service: TestService, token: dict[str, str]) -> str:
    return (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]
