"""The seventh set's honest agents are as many as they have to be, and right."""

import base64
import json
import random
from collections import Counter
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest
from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

from tests.ground_truth.seventh import HONEST, READ_THE_PAGE
from tests.ground_truth.seventh_answers import CALLED, PAGES, SAID
from tests.probing.ground_truth.test_ground_truth_fifth import by_mcp
from tests.probing.ground_truth.test_ground_truth_fourth import by_a2a, by_http
from tests.probing.ground_truth.test_ground_truth_sixth_honest import base
from tests.support.ground_truth_agents import endpoints_of, running

SPECS = {spec.name: spec for spec in HONEST}
endpoints = partial(endpoints_of, SPECS)
PROOF = "/.well-known/agent-registration.json"


def test_the_honest_half_is_as_large_and_as_varied_as_it_has_to_be() -> None:
    assert Counter(spec.kind for spec in HONEST) == {
        "seventh a2a": 12, "seventh mcp": 11, "seventh http": 12, "seventh x402": 5,
    }  # fmt: skip
    assert len(SPECS) == 40
    assert {spec.proof for spec in HONEST} == {"well_known", "card", "openapi", "payee"}
    assert len(READ_THE_PAGE) == 20
    assert {*SAID, *CALLED, *PAGES} == {*SPECS}


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, _high: min(low, 0.01) or 0.01)


async def test_messages_get_right_answers(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a") as urls, httpx.AsyncClient(trust_env=False) as http:
        for name, rows in SAID.items():
            for text, wanted in rows:
                assert wanted in await by_a2a(http, urls[name], text), (name, text)


async def test_streams_end_with_the_same_answer(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a") as urls, httpx.AsyncClient(trust_env=False) as http:
        for name in ("Evenly", "On deck"):
            text, wanted = SAID[name][0]
            assert wanted in await by_a2a(http, urls[name], text, streaming=True), name


async def test_a_missing_value_is_asked_for_and_taken_in_the_same_talk(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a") as urls, httpx.AsyncClient(trust_env=False) as http:
        talks = (
            ("Tidewaiter", "HW 04:12 5.6 m, what at 07:21?", "other tide",
             "LW 10:30 1.1 m. Height at 07:21?", "3.35 m"),
            ("Tank mate", "Which heater? room 18, water 25", "How big", "80 x 35 x 40 cm", "100 W"),
            ("Riego por goteo", "Tomate en julio", "los metros", "20 m2", "100 litros"),
        )  # fmt: skip
        for name, first, question, second, wanted in talks:
            assert question in await by_a2a(http, urls[name], first, talk="one"), name
            assert wanted in await by_a2a(http, urls[name], second, talk="one"), name


async def test_what_is_by_chance_keeps_its_rules(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "a2a", "mcp") as urls:
        async with httpx.AsyncClient(trust_env=False) as http:
            asked = "Teams: Aston, Bury, Crewe, Derby, Epsom"
            url = urls["Sunday League Fixtures"]
            said = [await by_a2a(http, url, asked) for _ in range(3)]
        assert len({*said}) == 3
        met = Counter(
            frozenset(pair.split(" v "))
            for line in said[0].splitlines()[1:] for pair in line.partition(": ")[2].split("; ")
        )  # fmt: skip
        teams = ("Aston", "Bury", "Crewe", "Derby", "Epsom")
        assert met == Counter(frozenset(pair) for pair in combinations(teams, 2))
        rolls = [await by_mcp(urls["Dice tower"], "roll", {"dice": "3d20"}) for _ in range(12)]
        totals = [json.loads(roll)["total"] for roll in rolls]
        assert all(3 <= total <= 60 for total in totals)
        assert len({*totals}) > 1


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


async def test_uploads_bookings_and_limits_work(tmp_path: Path) -> None:
    async with endpoints(tmp_path, "http") as urls, httpx.AsyncClient(trust_env=False) as http:
        point = '<trkpt lat="47.0{}" lon="8.0"><ele>{}</ele></trkpt>'
        gpx = "".join(point.format(n, 500 + 40 * n) for n in range(3))
        url = f"{base(urls['How far was it'])}/tracks"
        made = (await http.post(url, files={"file": ("walk.gpx", gpx)})).json()
        assert (made["km"], made["up_m"], made["down_m"]) == (2.22, 80, 0)
        assert (await http.post(url, files={"file": ("walk.gpx", "hm")})).status_code == 422
        url = f"{base(urls['Tool library'])}/bookings"
        wanted = {"tool": "tile-cutter", "first_day": "2026-05-01", "last_day": "2026-05-03"}
        booked = await http.post(url, json=wanted | {"name": "Jo"})
        assert (booked.status_code, booked.json()["fee"]) == (201, 36.0)
        assert (await http.post(url, json=wanted | {"name": "Mo"})).status_code == 409
        number = booked.json()["number"]
        assert (await http.get(f"{url}/{number}")).json() == booked.json()
        assert (await http.delete(f"{url}/{number}")).status_code == 204
        assert (await http.get(f"{url}/{number}")).status_code == 404
        letter = "<l><grams>80</grams><longest>20</longest><zone>home</zone></l>"
        said = await http.post(f"{base(urls['postage-xml'])}/calc", content=letter)
        assert "1.75" in said.text
        url = f"{base(urls['Departure board'])}/board/Brink"
        assert {(await http.get(url)).status_code for _ in range(61)} == {200, 429}


async def test_sellers_hand_over_what_a_stock_client_signs_for(tmp_path: Path) -> None:
    buyer = x402Client()
    register_exact_evm_client(buyer, EthAccountSigner(Account.create()))
    async with endpoints(tmp_path, "x402") as urls:
        home = {name: base(url) for name, url in urls.items()}
        job = {"board": 2400, "pieces": [1200, 1200, 800, 800, 700], "kerf": 0}
        rounds = {"rounds": [{"score": 85, "rating": 71.2, "slope": 128}] * 3}
        races = {"races": [["A", "B", "C"], ["B", "A", "C"], ["B", "C", "A"]], "discards": 1}
        paid: dict[str, tuple[str, Any, str]] = {
            "Cut list": ("/cuts", job, '"cuts":[[1200,1200],[800,800,700]]'),
            "Clubhouse handicap": ("/index", rounds, '"index": 10.2'),
            "great-circle": ("/great-circle?from=0,0&to=0,90", None, '"course": 90.0'),
            "Low point": ("/standings", races, '{"rank":1,"boat":"B","points":2,"races":[2,1,1]}'),
            "ean13 svg": ("/ean13.svg?code=400638133393", None, ">4006381333931</text></svg>"),
        }
        async with httpx.AsyncClient(trust_env=False) as http:
            for name, (path, body, _) in paid.items():
                method = "GET" if body is None else "POST"
                answer = await http.request(method, home[name] + path, json=body)
                assert answer.status_code == 402, name
                assert "payment-required" in answer.headers, name
        async with x402HttpxClient(buyer, trust_env=False) as http:
            for name, (path, body, wanted) in paid.items():
                method = "GET" if body is None else "POST"
                answer = await http.request(method, home[name] + path, json=body)
                assert wanted in answer.text, name


async def test_owners_who_read_the_page_publish_inputs_with_their_proof(tmp_path: Path) -> None:
    specs = {name: spec for name, spec in SPECS.items() if spec.proof == "well_known"}
    assert {*specs} >= READ_THE_PAGE
    async with running(tmp_path, specs) as files, httpx.AsyncClient(trust_env=False) as http:
        for name, file in files.items():
            made = (await http.get(base(file["services"][0]["endpoint"]) + PROOF)).json()
            assert made["registrations"] == file["registrations"], name
            assert ("testInputs" in made) == (name in READ_THE_PAGE), name


async def test_the_others_prove_control_where_they_say_they_do(tmp_path: Path) -> None:
    specs = {name: spec for name, spec in SPECS.items() if spec.proof != "well_known"}
    async with running(tmp_path, specs) as files, httpx.AsyncClient(trust_env=False) as http:
        for name, file in files.items():
            first = file["services"][0]["endpoint"]
            number = str(file["registrations"][0]["agentId"])
            if specs[name].proof == "card":
                card = (await http.get(first)).json()
                shown = card["capabilities"]["extensions"][0]["params"]["registrations"]
                assert shown[0]["agentId"] == number, name
            elif specs[name].proof == "openapi":
                info = (await http.get(f"{base(first)}/openapi.json")).json()["info"]
                assert info["x-agent-registrations"][0]["agentId"] == number, name
            else:
                paid = next(s["endpoint"] for s in file["services"] if s["name"] == "x402")
                answer = await http.get(paid, params={"code": "400638133393"})
                asked = json.loads(base64.b64decode(answer.headers["payment-required"]))
                assert int(asked["accepts"][0]["payTo"], 16) == int(number), name
