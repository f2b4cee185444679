"""An agent proves itself by the key of its domain, at a proxy's check and at a wrapper.

The agent's host is a real server that publishes the keys; the service fetches them itself.
"""

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import insert

from assay.control.scope import scope_of
from assay.db.engine import to_us
from assay.db.schema.everything import control_keys
from assay.identity.web_bot_auth import (
    CONTROL_KEPT_S,
    DIRECTORY_PATH,
    FAILURE_KEPT_S,
    KEPT_S,
    MEDIA_TYPE,
    thumbprint,
)
from assay.registries.model import RegistrationFile, Service
from tests.gate.test_gate_check_http import policies
from tests.identity.unit.test_http_signatures import PUBLIC, signed
from tests.support.fakes.trust import NETWORK
from tests.support.live_service import (
    TestService,
    agent,
    refused,
    start_test_service,
)
from tests.support.node import needs_node
from tests.support.wire_upstream import Asked, Wire, WireUpstream, wire_upstream

STOCK = Path(__file__).parents[1] / "support" / "web_bot_auth"
API = "api.example.com"
WRAPPERS = "assay.example"
STRANGER = Ed25519PrivateKey.from_private_bytes(b"\x09" * 32)
STRICT = {"default": {"minScore": 0, "authorities": [API]}}


def jwk(key: bytes) -> dict[str, str]:
    return {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": base64.urlsafe_b64encode(key).rstrip(b"=").decode(),
    }


def reply(
    body: bytes, kind: str = MEDIA_TYPE, status: str = "200 OK", more: str = ""
) -> Callable[[Wire, Asked], Any]:
    async def play(wire: Wire, asked: Asked) -> None:
        del asked
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n"
        await wire.send(head.encode() + b"\r\n" + body)

    return play


KEYS = json.dumps({"keys": [jwk(PUBLIC)]}).encode()


class World:
    """The service, an operator with a policy and a wrapper, and the host of agent 7."""

    def __init__(self, service: TestService, host: WireUpstream) -> None:
        self.service, self.host = service, host
        self.operator: dict[str, str] = {}
        self.wrapper = ""
        self.nonces = 0

    async def open(self) -> None:
        self.operator = await self.service.operator()
        answer = await policies(self.service, STRICT)
        assert answer.status_code == 200, answer.text
        token = await self.service.token()
        me = (await self.service.http.get("/operator/me", headers=token)).json()
        body = {
            "path": "/word",
            "pricePerCall": 0,
            "targetUrl": self.host.url,
            "trustEnabled": True,
            "minScore": 0,
            "method": "*",
        }
        made = await self.service.http.post("/operator/endpoints", json=body, headers=token)
        assert made.status_code == 200, made.text
        self.wrapper = f"/wrap/{me['operator']['id']}/word"
        self.host.plays[DIRECTORY_PATH] = reply(KEYS)
        self.declare("7", self.host.url + "/mcp")

    def declare(self, agent_id: str, url: str) -> None:
        file = RegistrationFile(name="Agent", services=(Service("web", url),))
        self.service.chain.agents[agent_id] = replace(agent(agent_id), registration=file)

    async def prove(self, agent_id: str = "7", path: str = "", *, disputed: bool = False) -> None:
        """What an evaluation stores that has found control of the host."""
        scope = scope_of(self.host.url + path)
        assert scope is not None
        row = {
            "subject_key": f"{NETWORK.caip2}/{agent_id}",
            "key": scope.key,
            "proof": "dns",
            "disputed": disputed,
            "seen_us": to_us(self.service.clock.now()),
        }
        async with self.service.app.database.write() as connection:
            await connection.execute(insert(control_keys).values(row))

    def sign(self, authority: str = API, **changes: Any) -> dict[str, str]:
        """The headers of a signed request of agent 7, each with a nonce of its own."""
        self.nonces += 1
        now = int(self.service.clock.now().timestamp())
        made = {"created": str(now), "expires": str(now + 60), "nonce": f'"{self.nonces}"'}
        agent = f'"{self.host.url}"'
        if authority == WRAPPERS:  # whose path is signed as well
            made["covered"] = '("@authority" "@path" "signature-agent" "x-agent-id")'
            parts = ("@authority", authority), ("@path", self.wrapper), ("signature-agent", agent)
            lines = tuple(f'"{name}": {value}' for name, value in (*parts, ("x-agent-id", "7")))
            changes = {"lines": lines, **changes}
        pairs = signed(agent=agent, authority=authority, **{**made, **changes})
        return {k.decode(): v.decode() for k, v in pairs}

    async def check(self, headers: Mapping[str, str], kind: str = "check") -> httpx2.Response:
        return await self.service.http.get(
            f"/gate/{kind}/default", headers={**headers, **self.operator}
        )

    async def wrapped(self, headers: Mapping[str, str], method: str = "GET") -> httpx2.Response:
        return await self.service.http.request(method, self.wrapper, headers=headers)

    def fetched(self) -> int:
        return len(self.host.to(DIRECTORY_PATH))


@pytest.fixture
def host() -> Iterator[WireUpstream]:
    with wire_upstream() as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path, host: WireUpstream) -> AsyncGenerator[World]:
    async with start_test_service(tmp_path, public_url=f"https://{WRAPPERS}") as service:
        made = World(service, host)
        await made.open()
        yield made


def because(answer: httpx2.Response, reason: str) -> None:
    assert refused(answer, 401, "web_bot_auth_refused")["reason"] == f"web_bot_auth_{reason}"


async def test_a_domains_key_lets_its_agent_in_at_the_check(world: World) -> None:
    await world.prove()
    answer = await world.check(world.sign())
    assert answer.status_code == 200, answer.text
    said = answer.json()
    assert (said["identityProven"], said["identityProof"]) == (True, "web_bot_auth")
    assert answer.headers["x-assay-identity-proven"] == "true"
    assert "x-agent-session" not in answer.headers
    session = await world.service.session()
    by_wallet = await world.check({**session, "x-agent-id": "7"})
    assert "identityProof" not in by_wallet.json()


async def test_a_domains_key_lets_its_agent_in_at_a_wrapper(world: World) -> None:
    await world.prove()
    answer = await world.wrapped(world.sign(WRAPPERS))
    assert answer.status_code == 200, answer.text
    [seen] = world.host.to("/word")
    assert seen.all("x-assay-agent") == ["7"]
    assert seen.all("x-assay-identity-proven") == ["true"]
    for name in ("signature", "signature-input", "signature-agent", "x-agent-id"):
        assert seen.all(name) == []  # its seller could use it elsewhere
    by_id = await world.wrapped({"x-agent-id": "7"})
    refused(by_id, 401, "identity_required")


async def test_a_stock_signer_is_let_in(world: World) -> None:
    """Cloudflare's, at the check, and at a wrapper with method and path signed too."""
    await world.prove()
    seed = {"d": jwk(b"\x07" * 32)["x"]}
    now = int(world.service.clock.now().timestamp())
    times = {"created": now, "expires": now + 300}
    headers = {"Signature-Agent": f'"{world.host.url}"', "x-agent-id": "7"}
    named = ["@authority", "x-agent-id", "signature-agent"]
    requests = [
        {
            "url": f"https://{API}/search",
            "method": "GET",
            "headers": headers,
            "components": named,
            **times,
        },
        {
            "url": f"https://{WRAPPERS}{world.wrapper}",
            "method": "POST",
            "headers": headers,
            "components": ["@method", "@path", *named],
            **times,
        },
    ]
    made = await asyncio.to_thread(stock, {"jwk": jwk(PUBLIC) | seed, "requests": requests})
    at_check, at_wrapper = ({**headers, **one} for one in made)
    assert (await world.check(at_check)).status_code == 200
    because(await world.wrapped(at_wrapper, "PUT"), "signature_invalid")
    assert (await world.wrapped(at_wrapper, "POST")).status_code == 200


def stock(asked: Mapping[str, Any]) -> list[dict[str, str]]:
    folder = needs_node(STOCK)
    script = folder / "sign.mjs"
    script.write_bytes((STOCK / "sign.mjs").read_bytes())
    done = subprocess.run(
        ["node", str(script), json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(json.loads(done.stdout.splitlines()[-1])["body"])


async def test_a_signature_for_another_site_is_refused(world: World) -> None:
    """What an agent sent to somebody else's site, and what it sent to the other part of this."""
    await world.prove()
    because(await world.check(world.sign("other.example")), "signature_invalid")
    because(await world.check(world.sign(WRAPPERS)), "components")
    because(await world.wrapped(world.sign(API)), "components")
    forwarded = {**world.sign("other.example"), "host": "other.example"}
    because(await world.check({**forwarded, "x-forwarded-host": API}), "signature_invalid")
    assert world.host.to("/word") == []


async def test_a_signature_for_one_wrapper_is_good_at_no_other(world: World) -> None:
    """All sellers' wrappers have the same host."""
    await world.prove()
    whole = world.sign(
        WRAPPERS, lines=None, covered='("@authority" "signature-agent" "x-agent-id")'
    )
    because(await world.wrapped(whole), "components")
    sent = world.sign(WRAPPERS)
    other = await world.service.http.get(f"{world.wrapper}?x=1", headers=sent)
    assert other.status_code == 200  # the query is signed if the agent wants it
    elsewhere = world.sign(
        WRAPPERS,
        lines=(
            f'"@authority": {WRAPPERS}',
            '"@path": /wrap/another/word',
            f'"signature-agent": "{world.host.url}"',
            '"x-agent-id": 7',
        ),
    )
    because(await world.wrapped(elsewhere), "signature_invalid")


async def test_the_agent_is_named_once_in_a_signed_header(world: World) -> None:
    await world.prove()
    blank = {**world.sign(), "x-agent-id": ""}
    asked = "/gate/check/default?agentId=7"
    answer = await world.service.http.get(asked, headers={**blank, **world.operator})
    refused(answer, 401, "identity_required")
    twice = [*world.sign().items(), ("x-agent-id", "8"), *world.operator.items()]
    answer = await world.service.http.get("/gate/check/default", headers=twice)
    because(answer, "malformed")


async def test_bytes_beyond_ascii_in_a_signed_query_are_a_refusal(world: World) -> None:
    await world.prove()
    covered = '("@authority" "@path" "@query" "signature-agent" "x-agent-id")'
    sent = world.sign(WRAPPERS, covered=covered)
    answer = await world.service.http.get(f"{world.wrapper}?a=\xff", headers=sent)
    because(answer, "signature_invalid")


async def test_a_signature_is_good_for_one_request(world: World) -> None:
    await world.prove()
    once = world.sign()
    assert (await world.check(once)).status_code == 200
    because(await world.check(once), "replayed")
    again = world.sign(WRAPPERS)
    assert (await world.wrapped(again)).status_code == 200
    because(await world.wrapped(again), "replayed")
    async with asyncio.TaskGroup() as group:
        twin = world.sign()
        both = [group.create_task(world.check(twin)) for _ in range(2)]
    assert sorted(one.result().status_code for one in both) == [200, 401]


async def test_a_proxy_may_fetch_the_refusal_with_the_same_signature(world: World) -> None:
    """It never lets anybody in."""
    await world.prove()
    await policies(world.service, {"default": {"minScore": 100, "authorities": [API]}})
    once = world.sign()
    refused(await world.check(once), 403, "trust_denied")
    refused(await world.check(once, "refusal"), 403, "trust_denied")
    await policies(world.service, STRICT)
    refused(await world.check(once, "refusal"), 503, "temporarily_unavailable")


async def test_a_signature_out_of_its_time_is_refused(world: World) -> None:
    await world.prove()
    late = world.sign()
    world.service.clock.move(61)
    because(await world.check(late), "expired")
    now = int(world.service.clock.now().timestamp())
    long = world.sign(created=str(now), expires=str(now + 3600))
    because(await world.check(long), "lifetime")


async def test_a_key_counts_in_its_own_time_however_fresh_its_directory_is(world: World) -> None:
    """`nbf` and `exp` are looked at for each request, not when the directory is read."""
    await world.prove()
    now = int(world.service.clock.now().timestamp())
    document = {"keys": [jwk(PUBLIC) | {"nbf": now + 30, "exp": now + 60}]}
    world.host.plays[DIRECTORY_PATH] = reply(json.dumps(document).encode())
    because(await world.check(world.sign()), "unknown_key")
    world.service.clock.move(30)
    assert (await world.check(world.sign())).status_code == 200
    world.service.clock.move(30)
    because(await world.check(world.sign()), "unknown_key")
    assert world.fetched() == 1


async def test_another_key_is_not_the_domains(world: World) -> None:
    await world.prove()
    because(await world.check(world.sign(key=STRANGER)), "unknown_key")
    claims = world.sign(key=STRANGER, keyid=f'"{thumbprint(PUBLIC)}"')
    because(await world.check(claims), "signature_invalid")


async def test_a_domain_speaks_only_for_an_agent_that_controls_its_whole_host(
    world: World,
) -> None:
    """A claim, a path of the host and a disputed proof are not enough, and nothing is fetched."""
    because(await world.check(world.sign()), "domain_not_proven")
    await world.prove(path="/mcp")
    await world.prove("8")
    world.service.clock.move(CONTROL_KEPT_S + 1)
    because(await world.check(world.sign()), "domain_not_proven")
    await world.prove(disputed=True)
    world.service.clock.move(CONTROL_KEPT_S + 1)
    because(await world.wrapped(world.sign(WRAPPERS)), "domain_not_proven")
    assert world.fetched() == 0


async def test_a_registration_that_no_longer_names_the_domain_ends_its_say(world: World) -> None:
    await world.prove()
    world.declare("7", "http://127.0.0.1:9/")
    because(await world.check(world.sign()), "domain_not_named")
    because(await world.wrapped(world.sign(WRAPPERS)), "domain_not_named")


async def test_a_domain_that_names_another_agent_changes_nothing_for_it(world: World) -> None:
    """Only agent 7 has proven the host: its key does not speak for 8."""
    await world.prove()
    because(await world.check(world.sign() | {"x-agent-id": "8"}), "domain_not_proven")


async def test_a_signature_of_one_agent_is_of_no_use_for_another_of_the_same_domain(
    world: World,
) -> None:
    """Both run at one host, which signs what its tenants send."""
    await world.prove()
    await world.prove("8")
    world.declare("8", world.host.url)
    because(await world.check(world.sign() | {"x-agent-id": "8"}), "signature_invalid")
    blind = world.sign(covered='("@authority" "signature-agent")')
    refused(await world.check(blind), 401, "identity_required")
    elsewhere = await world.service.http.get(
        "/gate/check/default?agentId=8&chain=base", headers={**world.sign(), **world.operator}
    )
    assert elsewhere.headers["x-assay-agent"] == f"{NETWORK.caip2}/7"


async def test_a_wallets_proof_comes_first_and_the_signature_is_not_read(world: World) -> None:
    session = await world.service.session()
    odd = {"signature-agent": "(", "signature-input": "(", "x-agent-id": "7"}
    assert (await world.check({**odd, **session})).status_code == 200
    assert (await world.wrapped({**odd, **session})).status_code == 200


async def test_a_policy_without_authorities_takes_no_signatures(world: World) -> None:
    await world.prove()
    await policies(world.service, {"default": {"minScore": 0}})
    refused(await world.check(world.sign()), 401, "identity_required")
    bad = {"default": {"minScore": 0, "authorities": ["https://api.example.com"]}}
    refused(await policies(world.service, bad), 400, "invalid_request")


async def test_a_directory_is_fetched_once_while_it_is_kept(world: World) -> None:
    await world.prove()
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(world.check(world.sign())) for _ in range(5)]
    assert {one.result().status_code for one in asked} == {200}
    assert world.fetched() == 1
    world.service.clock.move(KEPT_S + 1)
    world.host.plays[DIRECTORY_PATH] = reply(b'{"keys":[]}')
    because(await world.check(world.sign()), "unknown_key")
    assert world.fetched() == 2


@pytest.mark.parametrize(
    "play",
    [
        reply(KEYS + b" " * 70_000),
        reply(KEYS, "application/json"),
        reply(KEYS, status="404 Not Found"),
        reply(KEYS, status="302 Found", more="location: /keys\r\n"),
        reply(b"<html>"),
        reply(json.dumps({"keys": [jwk(PUBLIC)] * 21}).encode()),
    ],
    ids=["huge", "other media type", "missing", "redirect", "no JSON", "too many keys"],
)
async def test_a_bad_directory_is_refused_and_not_asked_again_at_once(
    world: World, play: Callable[[Wire, Asked], Any]
) -> None:
    await world.prove()
    world.host.plays[DIRECTORY_PATH] = play
    for _ in range(3):
        because(await world.check(world.sign()), "directory")
    assert world.fetched() == 1
    assert world.host.to("/keys") == []
    world.service.clock.move(FAILURE_KEPT_S + 1)
    world.host.plays[DIRECTORY_PATH] = reply(KEYS)
    assert (await world.check(world.sign())).status_code == 200


async def test_a_private_address_is_never_fetched(tmp_path: Path, host: WireUpstream) -> None:
    """Without the unsafe setting, plain HTTP and inner hosts are no domains."""
    async with start_test_service(tmp_path, allow_private_upstreams=False) as service:
        operator = await service.operator()
        await policies(service, STRICT)
        now = int(service.clock.now().timestamp())
        for url in (host.url, "https://127.0.0.1", "https://10.0.0.1", "http://agent.example"):
            pairs = signed(agent=f'"{url}"', authority=API, created=str(now), expires=str(now + 60))
            headers = {k.decode(): v.decode() for k, v in pairs}
            answer = await service.http.get("/gate/check/default", headers={**headers, **operator})
            because(answer, "agent")
    assert host.asked == []


@pytest.mark.slow
async def test_a_slow_directory_costs_its_callers_a_few_seconds_and_a_refusal(
    world: World,
) -> None:
    await world.prove()

    async def silent(wire: Wire, asked: Asked) -> None:
        del asked
        await wire.reader.read()

    world.host.plays[DIRECTORY_PATH] = silent
    async with asyncio.timeout(30):
        because(await world.check(world.sign()), "directory")
