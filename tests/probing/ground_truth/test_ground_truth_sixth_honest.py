"""The sixth set's honest agents are as many as they have to be, and right."""

import random
from collections import Counter
from functools import partial
from pathlib import Path

import httpx
import pytest
from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

from tests.ground_truth.sixth import HONEST, READ_THE_PAGE
from tests.ground_truth.sixth_answers import CALLED, PAGES, SAID
from tests.probing.ground_truth.test_ground_truth_fifth import by_mcp
from tests.probing.ground_truth.test_ground_truth_fourth import by_a2a, by_http
from tests.support.ground_truth_agents import endpoints_of, running

SPECS = {spec.name: spec for spec in HONEST}
endpoints = partial(endpoints_of, SPECS)
PROOF = "/.well-known/agent-registration.json"


def test_the_honest_half_is_as_large_and_as_varied_as_it_has_to_be() -> None:
    assert Counter(spec.kind for spec in HONEST) == {
        "sixth a2a": 14, "sixth mcp": 12, "sixth http": 11, "sixth x402": 3,
    }  # fmt: skip
    assert len(SPECS) == 40
    assert {spec.proof for spec in HONEST} == {"well_known", "card", "openapi", "payee"}
    assert len(READ_THE_PAGE) == 20
    assert {*SAID, *CALLED, *PAGES} == {*SPECS}


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, _high: min(low, 0.01) or 0.01)


def base(url: str) -> str:
    return "/".join(url.split("/")[:3])


async def test_messages_get_right_answers(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a") as urls, httpx.AsyncClient(trust_env=False) as http:
        for name, rows in SAID.items():
            for text, wanted in rows:
                assert wanted in await by_a2a(http, urls[name], text), (name, text)


async def test_streams_end_with_the_same_answer(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a") as urls, httpx.AsyncClient(trust_env=False) as http:
        for name in ("Obento", "Traceback triage"):
            text, wanted = SAID[name][0]
            assert wanted in await by_a2a(http, urls[name], text, streaming=True), name


async def test_a_missing_value_is_asked_for_and_taken_in_the_same_talk(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a") as urls, httpx.AsyncClient(trust_env=False) as http:
        talks = (
            ("Curtain call", "A track of 210 cm", "how long is the drop", "180 cm", "order 8.2 m"),
            ("Chef de brigade", "Pour 4 : 100 g de beurre", "combien de personnes", "10", "250 g"),
            ("Termin zwrotu", "Mam tu film.", "Którego dnia", "3 marca 2026", "10 marca 2026"),
        )
        for name, first, question, second, wanted in talks:
            assert question in await by_a2a(http, urls[name], first, talk="one"), name
            assert wanted in await by_a2a(http, urls[name], second, talk="one"), name


async def test_what_is_by_chance_keeps_its_rules(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a", "mcp") as urls:
        async with httpx.AsyncClient(trust_env=False) as http:
            asked = "Five words with dots, please"
            said = {await by_a2a(http, urls["Passphrase pantry"], asked) for _ in range(3)}
        assert {len(one.splitlines()[0].split(".")) for one in said} == {5}
        assert len(said) == 3
        given = {"names": ["Ada", "Bo", "Cy", "Di"], "couples": [["Ada", "Bo"]]}
        made = await by_mcp(urls["Names in a hat"], "draw_names", given)
        pairs = dict(line.split(" -> ") for line in made.splitlines())
        assert sorted(pairs) == sorted(pairs.values()) == given["names"]
        assert pairs["Ada"] not in {"Ada", "Bo"}


async def test_tools_give_right_answers(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "mcp") as urls:
        for name, calls in CALLED.items():
            for tool, given, wanted in calls:
                assert wanted in await by_mcp(urls[name], tool, given), (name, tool, given)


async def test_services_and_free_parts_of_sellers_are_right(tmp_path: Path) -> None:
    async with (
        endpoints(tmp_path, "http", "x402") as urls,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        for name, pages in PAGES.items():
            for path, body, wanted in pages:
                assert wanted in await by_http(http, urls[name], path, body), (name, path)
        made = await http.post(f"{base(urls['Slugs'])}/slug", content="Über Straße\nŁódź, 2026!")
        assert made.text == "uber-strasse\nlodz-2026\n"
        home = base(urls["Moon in a terminal"])
        said = [(await http.get(f"{home}/2026-03-01")).status_code for _ in range(60)]
        assert {*said} == {200, 429}


async def test_sellers_hand_over_what_a_stock_client_signs_for(tmp_path: Path) -> None:
    buyer = x402Client()
    register_exact_evm_client(buyer, EthAccountSigner(Account.create()))
    async with endpoints(tmp_path, "x402") as urls:
        sellers = ("Floor plan for tilers", "RF references", "Seven across")
        tiles, refs, across = (base(urls[name]) for name in sellers)
        async with httpx.AsyncClient(trust_env=False) as http:
            paid = f"{tiles}/plan?room_x=320&room_y=240", f"{refs}/make?base=1"
            for url in (*paid, f"{across}/fill?pattern=c..ud"):
                answer = await http.get(url)
                assert answer.status_code == 402
                assert "payment-required" in answer.headers
        async with x402HttpxClient(buyer, trust_env=False) as http:
            made = (await http.get(f"{tiles}/plan?room_x=320&room_y=240")).json()
            assert (made["tiles"], made["uncut"], made["area_m2"]) == (88, 70, 7.68)
            made = (await http.get(f"{refs}/make?base=539007547034")).json()
            assert made["reference"] == "RF18 5390 0754 7034"
            made = (await http.get(f"{across}/fill?pattern=c..ud")).json()
            assert made == {"words": ["cloud"]}


async def test_owners_who_read_the_page_publish_inputs_with_their_proof(tmp_path: Path) -> None:
    specs = {name: spec for name, spec in SPECS.items() if spec.proof == "well_known"}
    assert {*specs} >= READ_THE_PAGE
    async with running(tmp_path, specs) as files, httpx.AsyncClient(trust_env=False) as http:
        for name, file in files.items():
            made = (await http.get(base(file["services"][0]["endpoint"]) + PROOF)).json()
            assert made["registrations"] == file["registrations"], name
            assert ("testInputs" in made) == (name in READ_THE_PAGE), name
