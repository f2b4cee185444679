"""What lies beside an address that is proven: covered, lent, or anybody's."""

from typing import Any

import pytest

from assay.control.identity import proven_keys
from assay.control.ports import Card, ControlledEndpoint, Past
from assay.control.proofs import OTHERS_MAX, find_control
from assay.control.scope import scope_of
from tests.support.fakes.control import FILE, World, agent, naming
from tests.support.fakes.trust import OWNER, STRANGER, WALLET

HOST = "https://rooms.example"
LISTING = {"openapi": "3.1.0", "paths": {"/quotes/full": {"get": {}}, "/quotes/taste": {"get": {}}}}


@pytest.fixture
def world() -> World:
    return World()


def held(world: World, url: str, owner: str = STRANGER, who: str = "9") -> None:
    """Another agent has proven control of an address."""
    scope = scope_of(url)
    assert scope is not None
    world.kept.pasts[f"eip155:31337/{who}"] = Past(1, owner, None, frozenset({scope.key}))


async def with_card(world: World, at: str, to: str) -> object:
    """The proof of an A2A service whose card, at one path, sends callers to another."""
    says: dict[str, Any] = {**naming("7"), "url": HOST + to}
    world.services.cards[HOST + at] = Card(HOST + at, says)
    (found,) = await find_control(agent(), [ControlledEndpoint(HOST + at, "a2a")], world.needs)
    return None if found.proven is None else found.proven.proof


@pytest.mark.parametrize(
    ("at", "to"),
    [("/blue/card", "/blue/rpc"), ("/blue/agent.json", "/blue/v1"), ("/agent.json", "/talk")],
)
async def test_the_card_of_a_folder_speaks_for_the_addresses_beside_it(
    world: World, at: str, to: str
) -> None:
    assert await with_card(world, at, to) == "card"


@pytest.mark.parametrize(
    ("at", "to"),
    [
        ("/blue/card", "/green/rpc"),
        ("/blue/card", "/rpc"),
        ("/blue/card", "/blue/green/rpc"),
        ("/rooms/blue", "/rooms/green"),
        ("/files/blue.json", "/files/green"),
        ("/card?of=blue", "/rpc"),
    ],
)
async def test_a_card_speaks_for_no_other_folder_and_one_among_many_for_itself_alone(
    world: World, at: str, to: str
) -> None:
    assert await with_card(world, at, to) is None


async def test_a_card_takes_no_address_that_another_agent_has_proven(world: World) -> None:
    held(world, f"{HOST}/blue/rpc")
    assert await with_card(world, "/blue/card", "/blue/rpc") is None
    held(world, f"{HOST}/blue/rpc", OWNER)  # a sibling of the same owner
    assert await with_card(world, "/blue/card", "/blue/rpc") == "card"


async def sold(world: World, paid: str, paper: str, *more: str) -> list[object]:
    """The proofs of a paid address, its API's document, and other HTTP services."""
    urls = [HOST + path for path in (paid, paper, *more)]
    found = await find_control(
        agent(), [ControlledEndpoint(url, "http") for url in urls], world.needs
    )
    return [one.proven.proof if one.proven else None for one in found]


def seller(world: World, paid: str, paper: str, document: object = None) -> None:
    world.services.paid[HOST + paid] = {WALLET}
    world.hosts.pages[HOST + paper] = document or {"openapi": "3.0.0", "paths": {"/taste": {}}}


async def test_a_payee_that_is_the_wallet_speaks_for_the_documentation_of_what_is_paid(
    world: World,
) -> None:
    seller(world, "/full", "/openapi.json")
    assert await sold(world, "/full", "/openapi.json") == ["x402_payee", "x402_payee"]
    seller(world, "/quotes/full", "/openapi.json", LISTING)
    assert await sold(world, "/quotes/full", "/openapi.json") == ["x402_payee", "x402_payee"]


async def test_it_speaks_for_nothing_else_on_the_host(world: World) -> None:
    seller(world, "/blue/full", "/openapi.json")  # the host's own document, that does not list it
    assert await sold(world, "/blue/full", "/openapi.json") == ["x402_payee", None]
    seller(world, "/blue/full", "/green/openapi.json")
    assert await sold(world, "/blue/full", "/green/openapi.json") == ["x402_payee", None]
    seller(world, "/full", "/openapi.json")
    world.hosts.pages[HOST + "/free"] = {"said": "no document"}
    assert (await sold(world, "/full", "/openapi.json", "/free"))[2] is None


async def test_it_does_not_where_the_host_is_seen_to_be_shared(world: World) -> None:
    seller(world, "/full", "/openapi.json")
    world.services.paid[HOST + "/other"] = {STRANGER}
    proofs = await sold(world, "/full", "/openapi.json", "/other")
    assert proofs == ["x402_payee", None, None]
    del world.services.paid[HOST + "/other"]
    held(world, f"{HOST}/green")
    assert await sold(world, "/full", "/openapi.json") == ["x402_payee", None]
    held(world, f"{HOST}/green", OWNER)
    assert await sold(world, "/full", "/openapi.json") == ["x402_payee", "x402_payee"]
    for who in range(OTHERS_MAX + 1):
        held(world, f"{HOST}/{who}", OWNER, str(20 + who))
    assert await sold(world, "/full", "/openapi.json") == ["x402_payee", None]
    world.kept.pasts.clear()
    world.hosts.pages[HOST + FILE] = naming("8")
    assert await sold(world, "/full", "/openapi.json") == ["x402_payee", None]


async def test_what_is_lent_leaves_no_key_so_that_no_finding_follows_it(world: World) -> None:
    """Who sells on a path of a host that is somebody else's must not pull that host down."""
    seller(world, "/full", "/openapi.json")
    urls = [ControlledEndpoint(HOST + path, "http") for path in ("/full", "/openapi.json")]
    keys = proven_keys(agent(), await find_control(agent(), urls, world.needs))
    paid = f"only {HOST}:443/full"
    assert {key for key in keys if not key.startswith("address ")} == {paid}
