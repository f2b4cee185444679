"""What points at the upstream's place points at the wrapper's when it goes back (RFC 9110,
section 7)."""

from decimal import Decimal
from typing import Any, cast

import pytest

from assay.common.keyring import SecretBox
from assay.net.egress.credentials import OwnCredentials
from assay.net.egress.url import EgressPolicy
from assay.payments.networks import payment_networks
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.service import ConfigRules, Endpoints, NewEndpoint
from assay.wrappers.stages.forward import ForwardStage
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.wrappers import MemoryWrapperStore

ADDRESS = "https://assay.example"
OUTSIDE = f"{ADDRESS}/wrap/op"


async def back(target: str, name: str, value: str) -> str:
    policy = EgressPolicy(allow_private=True, require_https=False)
    rules = ConfigRules(policy, payment_networks({}), None, Decimal(1))
    endpoints = Endpoints(
        MemoryWrapperStore(), SecretBox.from_secrets("k" * 40), rules, FrozenClock()
    )
    config = await endpoints.create("op", NewEndpoint("/*", Decimal(0), target))
    origin = WrapperOrigin.of("https://app.example", ADDRESS)
    step = ForwardStage(cast("Any", None), origin, OwnCredentials(lambda _token: False))
    found = step.answer_headers(config, [(name.encode(), value.encode())])
    return next(value.decode() for key, value in found if key == name.encode())


@pytest.mark.parametrize("name", ["location", "content-location"])
@pytest.mark.parametrize(
    ("target", "value", "shown"),
    [
        ("https://up.example", "https://up.example/items/", f"{OUTSIDE}/items/"),
        ("https://up.example", "https://up.example", OUTSIDE),
        ("https://up.example", "https://up.example?a=/b", f"{OUTSIDE}?a=/b"),
        ("https://up.example", "/items/", "/wrap/op/items/"),
        ("https://up.example/", "/items/?next=/a", "/wrap/op/items/?next=/a"),
        ("https://up.example/v1", "/v1/items/", "/wrap/op/items/"),
        ("https://up.example/v1", "/v1", "/wrap/op"),
        ("https://up.example/v1", "/v1?a", "/wrap/op?a"),
        ("https://up.example/v1", "https://up.example/v1/x#y", f"{OUTSIDE}/x#y"),
        # Not below the target: nothing of ours to say.
        ("https://up.example/v1", "/v10/items", "/v10/items"),
        ("https://up.example/v1", "/other", "/other"),
        ("https://up.example/v1", "https://up.example/other", "https://up.example/other"),
        ("https://up.example", "https://up.example.evil/", "https://up.example.evil/"),
        ("https://up.example", "//evil.example/x", "//evil.example/x"),
        ("https://up.example", "/\\evil.example", "/\\evil.example"),
        ("https://up.example", "items/", "items/"),
        ("https://up.example", "?a", "?a"),
    ],
)
async def test_a_redirect_within_the_target_stays_within_the_wrapper(
    name: str, target: str, value: str, shown: str
) -> None:
    assert await back(target, name, value) == shown


@pytest.mark.parametrize(
    ("target", "value", "shown"),
    [
        ("https://up.example", "a=1", "a=1; Path=/wrap/op"),
        ("https://up.example", "a=1; Path=/x", "a=1; Path=/wrap/op/x"),
        ("https://up.example/v1", "a=1; path=/", "a=1; Path=/wrap/op"),
        ("https://up.example/v1", "a=1; Path=/v1", "a=1; Path=/wrap/op"),
        ("https://up.example/v1", "a=1; Path=/v1/", "a=1; Path=/wrap/op"),
        ("https://up.example/v1", "a=1; Path=/v1/x; Secure", "a=1; Secure; Path=/wrap/op/x"),
        ("https://up.example/v1/w", "a=1; Path=/v1", "a=1; Path=/wrap/op"),
        ("https://up.example/v1", "a=1; Path=/v10", "a=1; Path=/wrap/op/v10"),
        ("https://up.example/v1", "a=1; Path=x", "a=1; Path=/wrap/op"),
    ],
)
async def test_a_cookie_comes_back_to_the_paths_it_was_made_for(
    target: str, value: str, shown: str
) -> None:
    """Beneath a target with a path of its own, callers know nothing of that path."""
    assert await back(target, "set-cookie", value) == shown
