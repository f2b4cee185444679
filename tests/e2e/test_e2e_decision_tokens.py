"""Decision tokens are verified by the JWT libraries people have, and by a proxy."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import jwt as pyjwt
import pytest
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from tests.support import node
from tests.support.envoy import envoy_that_verifies
from tests.support.live_service import start_test_service

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Issued:
    """A decision token, and the key sets it is to be verified with."""

    token: str
    jwks: Mapping[str, Any]
    """As it is just after a start: the keys of the version before are in it."""
    claims: Mapping[str, Any]

    @property
    def forged(self) -> str:
        """The same with another payload."""
        head, _, signature = self.token.split(".")
        other = pyjwt.encode({**self.claims, "allow": True, "score": 100}, "k" * 32)
        return f"{head}.{other.split('.')[1]}.{signature}"


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return asyncio.run(_issue(tmp_path_factory.mktemp("assay")))


async def _issue(folder: Path) -> Issued:
    async with start_test_service(folder) as service:
        jwks = (await service.http.get("/.well-known/jwks.json")).json()
        service.clock.set(datetime.fromtimestamp(int(time.time()), UTC))
        headers = await service.operator() | await service.session()
        token = (await service.gate(headers)).json()["decisionToken"]
    return Issued(token, jwks, pyjwt.decode(token, options={"verify_signature": False}))


def by_pyjwt(issued: Issued, token: str) -> Mapping[str, Any] | None:
    keys = pyjwt.PyJWKSet.from_dict(dict(issued.jwks))
    key = keys[pyjwt.get_unverified_header(token)["kid"]]
    try:
        return pyjwt.decode(
            token,
            key,
            algorithms=["ES256"],
            audience=issued.claims["aud"],
            issuer=issued.claims["iss"],
        )
    except pyjwt.InvalidTokenError:
        return None


def by_joserfc(issued: Issued, token: str) -> Mapping[str, Any] | None:
    keys = KeySet.import_key_set(issued.jwks)  # type: ignore[arg-type]
    try:
        return jwt.decode(token, keys, algorithms=["ES256"]).claims
    except JoseError:
        return None


def by_node(library: str) -> Callable[[Issued, str], Mapping[str, Any] | None]:
    def verify(issued: Issued, token: str) -> Mapping[str, Any] | None:
        asked = {"issuer": issued.claims["iss"], "audience": issued.claims["aud"]}
        answer = node.run(
            "verify_jwt.mjs", {"library": library, "token": token, "jwks": issued.jwks, **asked}
        )
        return json.loads(answer.body) if answer.status == 200 else None

    return verify


@pytest.mark.parametrize(
    "verify",
    [
        pytest.param(by_pyjwt, id="PyJWT"),
        pytest.param(by_joserfc, id="joserfc"),
        pytest.param(by_node("jsonwebtoken"), id="jsonwebtoken", marks=pytest.mark.slow),
        pytest.param(by_node("jose"), id="jose", marks=pytest.mark.slow),
    ],
)
def test_a_library_verifies_a_token_and_refuses_a_forged_one(
    issued: Issued, verify: Callable[[Issued, str], Mapping[str, Any] | None]
) -> None:
    assert {key["alg"] for key in issued.jwks["keys"]} == {"ES256"}
    assert verify(issued, issued.token) == issued.claims
    assert verify(issued, issued.forged) is None


def test_envoy_lets_a_token_through_and_refuses_a_forged_one(
    issued: Issued, tmp_path: Path
) -> None:
    issuer, audience = issued.claims["iss"], issued.claims["aud"]
    with envoy_that_verifies(tmp_path, issued.jwks, issuer, audience) as address:
        statuses = [
            httpx2.get(address, headers=headers).status_code
            for headers in (
                {"authorization": f"Bearer {issued.token}"},
                {"authorization": f"Bearer {issued.forged}"},
                {},
            )
        ]
    assert statuses == [200, 401, 401]
