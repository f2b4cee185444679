"""Proofs of control: what counts, for what, and what an attacker gets for the rest."""

import asyncio
import json
import time
from typing import Any

import pytest

from assay.common.json import JsonObject
from assay.control.ports import Card, ControlledEndpoint
from assay.control.proofs import collect_control, find_control
from assay.control.scope import scope_of
from assay.control.statements import instructions
from assay.net.egress.ports import EgressResponse, Failure, Limits, OutboundRequest
from tests.support.fakes.control import FILE, Hosts, World, agent, naming, record
from tests.support.fakes.trust import STRANGER, WALLET

HOST = "https://h.example"
TXT = "_agent-registration.h.example"


@pytest.fixture
def world() -> World:
    return World()


async def row(world: World, url: str, kind: str = "mcp", agent_id: str = "7") -> JsonObject:
    (found,) = await collect_control(agent(agent_id), [ControlledEndpoint(url, kind)], world.needs)
    assert found["service"] == url
    return found


async def proof(world: World, url: str, kind: str = "mcp", agent_id: str = "7") -> object:
    found = await row(world, url, kind, agent_id)
    assert not found["conflict"]
    return found["proof"]


def rival(world: World, url: str, agent_id: str = "8") -> None:
    """Another agent has proven control there, in an evaluation of its own."""
    scope = scope_of(url)
    assert scope is not None
    world.kept.proven.add((scope.key, f"eip155:31337/{agent_id}"))


async def test_without_a_proof_there_is_none(world: World) -> None:
    assert await row(world, f"{HOST}/a") == {
        "service": f"{HOST}/a",
        "proof": None,
        "conflict": False,
        "why": "no_proof",
        "publish": {
            "file": {"url": HOST + FILE, "body": json.dumps(naming("7"), indent=2)},
            "record": {"name": TXT, "type": "TXT", "value": record("7")},
        },
    }


async def test_dns_speaks_for_its_host_and_all_its_paths(world: World) -> None:
    world.records.of[TXT] = ["v=spf1 -all", record("7")]
    assert await proof(world, f"{HOST}/a/b?x=1") == "dns"
    assert await proof(world, "https://sub.h.example/") is None
    assert await proof(world, "https://example/") is None


async def test_the_hosts_file_speaks_for_its_origin(world: World) -> None:
    world.hosts.pages[HOST + FILE] = naming("7")
    assert await proof(world, f"{HOST}/a") == "well_known"
    assert await proof(world, f"{HOST}:8443/a") is None
    assert await proof(world, "http://h.example/a") is None
    assert await proof(world, "https://www.h.example/a") is None


async def test_one_file_may_name_many_agents(world: World) -> None:
    world.hosts.pages[HOST + FILE] = naming(*(str(n) for n in range(1000)))
    rival(world, HOST)
    assert await proof(world, f"{HOST}/a") == "well_known"
    assert await proof(world, f"{HOST}/a", agent_id="8") == "well_known"


async def test_a_file_is_asked_for_once_a_host(world: World) -> None:
    world.hosts.pages[HOST + FILE] = naming("7")
    endpoints = [ControlledEndpoint(f"{HOST}/{n}", "mcp") for n in range(6)]
    rows = await collect_control(agent(), endpoints, world.needs)
    assert [found["proof"] for found in rows] == ["well_known"] * 6
    assert world.hosts.asked == [HOST + FILE]


@pytest.mark.parametrize(
    "page",
    [
        b"", b"{", b"<html>7</html>", b"[" * 90_000, b"\xff" * 100, b"null",
        {"registrations": "7"}, {"registrations": [[[]]]}, {"registrations": [{"agentId": {}}]},
        b'{"registrations": [' + b"{}," * 60_000 + b"{}]}",
        EgressResponse(200, (), b"{}", truncated=True, elapsed_ms=1.0),
        Failure.TIMEOUT, Failure.REFUSED_ADDRESS, Failure.TLS, Failure.PROTOCOL, Failure.NAME,
    ],
    ids=range(16),
)  # fmt: skip
async def test_a_hostile_file_proves_nothing_and_breaks_nothing(world: World, page: Any) -> None:
    world.hosts.pages[HOST + FILE] = page
    found = await row(world, f"{HOST}/a")
    assert (found["proof"], found.get("unfinished")) == (None, None)


async def test_what_our_budget_did_not_let_us_ask_is_unfinished_and_no_verdict(
    world: World,
) -> None:
    world.hosts.pages[HOST + FILE] = Failure.BUDGET
    assert (await row(world, f"{HOST}/a"))["unfinished"] is True
    world.records.of[TXT] = None
    world.hosts.pages[HOST + FILE] = naming("8")
    assert (await row(world, f"{HOST}/a"))["unfinished"] is True
    world.records.of[TXT] = [record("7")]
    world.hosts.pages[HOST + FILE] = Failure.BUDGET
    assert await proof(world, f"{HOST}/a") == "dns"


async def test_a_host_that_names_the_agent_is_asked_nothing_more(world: World) -> None:
    world.hosts.pages[HOST + FILE] = naming("7")
    assert await proof(world, f"{HOST}/api", "http") == "well_known"
    assert world.hosts.asked == [HOST + FILE]


async def test_a_document_that_our_budget_did_not_let_us_read_is_unfinished(world: World) -> None:
    world.hosts.pages[f"{HOST}/api"] = Failure.BUDGET
    assert (await row(world, f"{HOST}/api", "http"))["unfinished"] is True


async def test_a_page_for_people_is_not_asked_for_a_document_beside_it(world: World) -> None:
    html = EgressResponse(
        200, (("content-type", "text/html"),), b"<p>", truncated=False, elapsed_ms=1.0
    )
    world.hosts.pages[f"{HOST}/home"] = html
    assert await proof(world, f"{HOST}/home", "http") is None
    assert f"{HOST}/home/openapi.json" not in world.hosts.asked


async def test_a_host_that_never_answers_holds_up_no_other_and_is_unfinished(world: World) -> None:
    class Tarpit(Hosts):
        async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
            if "slow" in request.url:
                await asyncio.Event().wait()
            return await super().send(request, limits)

    world.hosts = Tarpit()
    world.hosts.pages[HOST + FILE] = naming("7")
    endpoints = [
        ControlledEndpoint("https://slow.example/", "mcp"),
        ControlledEndpoint(f"{HOST}/a", "mcp"),
    ]
    slow, quick = await find_control(agent(), endpoints, world.needs, 0.2)
    assert (slow.is_unfinished, slow.proven) == (True, None)
    assert quick.proven is not None


async def test_services_of_one_silent_host_all_run_out_of_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose time ends later do not take the end of the first one's for their own."""

    class Silent(Hosts):
        async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
            await asyncio.Event().wait()
            return await super().send(request, limits)

    def late(url: str) -> object:
        time.sleep(0.03)  # a busy machine: their times do not end within one turn of the loop
        return scope_of(url)

    monkeypatch.setattr("assay.control.proofs.scope_of", late)
    world.hosts = Silent()
    endpoints = [ControlledEndpoint(f"{HOST}/{n}", "mcp") for n in range(3)]
    found = await find_control(agent(), endpoints, world.needs, 0.2)
    assert [(one.why, one.is_unfinished) for one in found] == [("no_time", True)] * 3


async def test_redirects_of_the_file_stay_on_the_site_and_on_https(world: World) -> None:
    pages = world.hosts.pages
    pages["https://www.h.example" + FILE] = naming("7")
    pages[HOST + FILE] = "https://www.h.example" + FILE
    assert await proof(world, f"{HOST}/a") == "well_known"
    for target in (
        "https://evil.example/file.json", "http://h.example" + FILE, "//evil.example" + FILE,
        "https://h.example@evil.example/", "https://[", "javascript:1", "", HOST + FILE,
    ):  # fmt: skip
        pages[HOST + FILE] = target
        pages[target] = naming("7") if target != HOST + FILE else target
        assert await proof(world, f"{HOST}/a") is None, target


async def test_tenants_of_a_shared_host_do_not_redirect_to_one_another(world: World) -> None:
    world.hosts.pages["https://me.github.io" + FILE] = naming("7")
    world.hosts.pages["https://you.github.io" + FILE] = "https://me.github.io" + FILE
    assert await proof(world, "https://me.github.io/a") == "well_known"
    assert await proof(world, "https://you.github.io/a") is None
    assert await proof(world, "https://github.io/a") is None


def card(world: World, endpoint: str, url: str, says: dict[str, Any], to: str = "") -> None:
    world.services.cards[endpoint] = Card(url, {**says, "url": to or endpoint})


async def test_a_card_speaks_for_its_own_url_and_below(world: World) -> None:
    mine = f"{HOST}/t/me"
    card(world, mine, f"{mine}/.well-known/agent-card.json", naming("7"))
    assert await proof(world, mine, "a2a") == "card"
    for other in (f"{HOST}/t/you", f"{HOST}/t/menot", f"{HOST}/t", HOST, f"{HOST}/t/me/../you"):
        card(world, other, f"{mine}/.well-known/agent-card.json", naming("7"))
        assert await proof(world, other, "a2a") is None, other


async def test_a_card_that_names_the_wallet_is_a_proof_too(world: World) -> None:
    card(world, f"{HOST}/a", f"{HOST}/a", {"agentWallet": WALLET})
    assert await proof(world, f"{HOST}/a", "a2a") == "card"
    card(world, f"{HOST}/a", f"{HOST}/a", {"agentWallet": STRANGER})
    assert await proof(world, f"{HOST}/a", "a2a") is None


async def test_a_card_that_sends_callers_elsewhere_proves_nothing(world: World) -> None:
    mine = f"{HOST}/t/me"
    where = f"{mine}/.well-known/agent-card.json"
    for victim in ("https://victim.example/a2a", f"{HOST}/t/you", f"{HOST}:8443/t/me"):
        card(world, mine, where, naming("7"), victim)
        assert (await row(world, mine, "a2a"))["why"] == "interface_elsewhere"
    world.hosts.pages["https://victim.example" + FILE] = naming("7")  # it agrees
    card(world, mine, where, naming("7"), "https://victim.example/a2a")
    assert await proof(world, mine, "a2a") == "card"
    many = {"supportedInterfaces": [{"url": f"{mine}/{n}"} for n in range(100)]}
    card(world, mine, where, {**naming("7"), **many})
    assert await proof(world, mine, "a2a") is None


async def test_an_openapi_document_beside_an_endpoint_speaks_for_that_endpoint_alone(
    world: World,
) -> None:
    document = {"openapi": "3.1.0", "info": {"x-agent-wallet": WALLET}}
    world.hosts.pages[f"{HOST}/api"] = document
    assert await proof(world, f"{HOST}/api", "http") == "openapi"
    world.hosts.pages = {f"{HOST}/up/openapi.json": document}
    assert await proof(world, f"{HOST}/up", "http") == "openapi"
    assert await proof(world, f"{HOST}/up/victim.json", "http") is None
    world.hosts.pages = {f"{HOST}/up": {"info": {"x-agent-wallet": WALLET}}}  # no OpenAPI
    assert await proof(world, f"{HOST}/up", "http") is None


async def test_a_payee_speaks_for_its_own_service_alone(world: World) -> None:
    world.services.paid[f"{HOST}/paid"] = {WALLET}
    assert await proof(world, f"{HOST}/paid", "http") == "x402_payee"
    assert await proof(world, f"{HOST}/paid/more", "http") is None
    world.services.paid[f"{HOST}/paid"] = {WALLET, STRANGER}
    assert await proof(world, f"{HOST}/paid", "http") is None


async def test_the_longest_proven_path_wins(world: World) -> None:
    world.hosts.pages[HOST + FILE] = naming("7")
    mine = f"{HOST}/t/eight"
    card(world, mine, mine, naming("8"))
    assert await proof(world, mine, "a2a", "8") == "card"
    assert await proof(world, mine, "a2a") == "well_known"  # an id nobody registered is nobody
    rival(world, mine)
    assert (await row(world, mine, "a2a"))["why"] == "longer_path"
    assert await proof(world, f"{HOST}/t/seven") == "well_known"


async def test_two_proofs_that_contradict_each_other_are_named_and_move_nobody(
    world: World,
) -> None:
    world.records.of[TXT] = [record("7")]
    world.hosts.pages[HOST + FILE] = naming("8")
    rival(world, HOST, "8")
    rival(world, HOST, "7")
    seven, eight = await row(world, f"{HOST}/a"), await row(world, f"{HOST}/a", agent_id="8")
    assert (seven["proof"], seven["conflict"], seven["with"]) == ("dns", True, ["eip155:31337/8"])
    assert (eight["proof"], eight["conflict"], eight["with"]) == (
        *("well_known", True),
        ["eip155:31337/7"],
    )


async def test_a_claim_nobody_proved_lowers_nobody(world: World) -> None:
    """Placeholders, foreign registries and ids that were never evaluated contradict nothing."""
    world.records.of[TXT] = [record("7")]
    world.hosts.pages[HOST + FILE] = naming("0", "8")
    assert await proof(world, f"{HOST}/a") == "dns"
    rival(world, "https://elsewhere.example/", "8")
    assert await proof(world, f"{HOST}/a") == "dns"


async def test_what_is_no_web_address_has_no_proof(world: World) -> None:
    for url in ("https://h.example@evil.example/", "mailto:a@h.example", "https://h.example\x00/"):
        assert (await row(world, url))["why"] == "not_an_address"
    assert world.hosts.asked == []


@pytest.mark.parametrize("form", ["file", "record"])
async def test_publishing_what_the_instructions_say_proves_control(world: World, form: str) -> None:
    what = instructions(agent(), f"{HOST}/a")
    assert what is not None
    assert what.record_name is not None
    assert what.record_text is not None
    if form == "file":
        world.hosts.pages[what.file_url] = what.file_text.encode()
    else:
        world.records.of[what.record_name] = [what.record_text]
    assert await proof(world, f"{HOST}/a") == {"file": "well_known", "record": "dns"}[form]


def test_a_literal_address_is_proven_by_a_file_alone() -> None:
    what = instructions(agent(), "http://127.0.0.1:8001/a")
    assert what is not None
    assert what.file_url == "http://127.0.0.1:8001" + FILE
    assert what.record_name is None
    assert instructions(agent(), "mailto:a@h.example") is None
