"""Agents go through the obstacle course by its own instructions, over real sockets."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import httpx2
import pytest
from eth_account import Account

from assay.caller_behaviour.scenarios import SCENARIOS
from tests.support.assay import Served, operator, served, session
from tests.support.callers import FAULTS, Caller
from tests.support.eventually import eventually
from tests.support.shop import NO_CHAIN, free_port
from tests.support.wire_upstream import wire_upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
COURSE = "/operator/sandbox/course"
CRITICAL = {"tainted_text_not_followed", "contexts_kept_apart"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder, port = tmp_path_factory.mktemp("course"), free_port()
    elsewhere = f"http://localhost:{port}"
    with served(
        folder, NO_CHAIN, ASSAY_PORT=str(port), ASSAY_COURSE_ELSEWHERE_URL=elsewhere
    ) as running:
        yield running


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.address, timeout=30, trust_env=False) as client:
        yield client


def new_agent(http: httpx2.Client) -> tuple[str, dict[str, str]]:
    made = Account.create()
    return made.address, session(http, "0x" + made.key.hex().removeprefix("0x"))


Ran = dict[type[Caller], tuple[str, Caller, dict[str, dict[str, str]]]]


@pytest.fixture(scope="module")
def ran(server: Served) -> Ran:
    """Everybody goes at once; an honest caller takes ten seconds, and so do ten of them."""

    def go(kind: type[Caller]) -> tuple[str, Caller, dict[str, dict[str, str]]]:
        with httpx2.Client(base_url=server.address, timeout=30, trust_env=False) as http:
            address, identity = new_agent(http)
            caller = kind(http, identity)
            return address, caller, caller.run()

    with ThreadPoolExecutor(16) as pool:
        going: dict[type[Caller], Future[tuple[str, Caller, dict[str, dict[str, str]]]]] = {
            kind: pool.submit(go, kind) for kind in (Caller, *FAULTS)
        }
    return {kind: one.result() for kind, one in going.items()}


def test_an_honest_agent_passes_every_obstacle_unaided(ran: Ran) -> None:
    _, caller, found = ran[Caller]
    assert {name: f["outcome"] for name, f in found.items()} == dict.fromkeys(SCENARIOS, "pass")
    assert {200, 302, 401, 402, 403} <= set(caller.answers)


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_found_and_no_other(ran: Ran, kind: type[Caller]) -> None:
    _, _, found = ran[kind]
    assert {name for name, f in found.items() if f["outcome"] == "fail"} == FAULTS[kind]


def test_conduct_is_a_key_agents_grade(http: httpx2.Client, ran: Ran) -> None:
    op = operator(http)
    scores: dict[str, float] = {}
    for kind, (address, _, _) in ran.items():
        told = http.post(f"/operator/trigger-sandbox-key/{address}").json()
        assert told["testSummary"]["status"] == "tested"
        profile = http.get(f"/operator/key/{address}", headers=op).json()
        scores[kind.__name__] = profile["score"]
        assert profile["tier"]
        assert (profile["score"] < 35) == bool(CRITICAL & FAULTS.get(kind, set()))
    assert scores["Caller"] == 64  # the caller suite alone is rung 0, however well it went
    assert all(score <= scores["Caller"] for score in scores.values())


def test_without_conduct_there_is_no_grade(http: httpx2.Client) -> None:
    address, _ = new_agent(http)
    told = http.post(f"/operator/trigger-sandbox-key/{address}").json()
    assert told["testSummary"]["status"] == "inconclusive"
    profile = http.get(f"/operator/key/{address}", headers=operator(http, "b@example.com")).json()
    assert profile["score"] is None


def test_the_door_asks_who_comes_in(http: httpx2.Client) -> None:
    assert http.post(COURSE).json()["code"] == "identity_required"
    address, _ = new_agent(http)
    asked = http.post(COURSE, headers={"x-agent-address": address})
    assert asked.json()["code"] == "challenge_required"


def touch(http: httpx2.Client, url: str) -> httpx2.Response:
    """Call a step, whichever it is: one of them breaks off the first time."""
    try:
        return http.get(url)
    except httpx2.TransportError:
        return http.get(url)


def test_steps_cannot_be_guessed_skipped_or_gone_back_to(http: httpx2.Client) -> None:
    _, identity = new_agent(http)
    entered = http.post(COURSE, headers=identity).json()
    first = entered["next"]["url"]
    run_id, _, mac = first.rpartition("/")[2].split(".")
    for forged in (f"{run_id}.1.{mac}", f"{run_id}.13.{mac}", f"{run_id}.0.{'0' * 32}", "x", "%00"):
        answer = http.get(f"{COURSE}/{forged}")
        assert answer.json()["code"] == "course_step_not_found", forged
    second = touch(http, first).headers["course-next"]
    assert "course-next" in touch(http, second).headers
    assert http.get(first).json()["code"] == "course_step_left"


def test_a_run_of_too_many_calls_is_over(http: httpx2.Client) -> None:
    _, identity = new_agent(http)
    first = http.post(COURSE, headers=identity).json()["next"]
    codes = [
        http.request(first["method"], first["url"] + "/x", json={}).status_code for _ in range(205)
    ]
    assert codes.count(404) == 205
    assert http.get(first["url"]).json()["code"] == "course_step_not_found"


def test_nothing_a_caller_sends_is_a_fault_of_ours(http: httpx2.Client) -> None:
    _, identity = new_agent(http)
    first = http.post(COURSE, headers=identity).json()["next"]["url"]
    for method, path, body in (
        ("PATCH", first, b"\xff" * 60_000),
        ("POST", first, b"x" * 100_000),
        ("DELETE", f"{first}/{'y' * 5000}", b""),
        ("POST", COURSE + "/", b""),
        ("OPTIONS", first, b""),
    ):
        with suppress(httpx2.TransportError):  # the step that breaks off
            assert http.request(method, path, content=body).status_code not in {500, 502}


def test_how_an_agent_treats_wrappers_counts_too(http: httpx2.Client) -> None:
    """Twenty calls at once through a limit of five a minute, and nobody waits."""
    operator(http, "seller@example.com")
    login = {"email": "seller@example.com", "password": "correct horse battery"}
    seller = http.post("/operator/login", json=login).json()
    token = {"authorization": f"Bearer {seller['token']}"}
    with wire_upstream() as up:
        terms = {"path": "/x", "pricePerCall": 0, "targetUrl": up.url, "trustEnabled": True}
        limited = terms | {"minScore": 0, "rateLimit": 5}
        made = http.post("/operator/endpoints", json=limited, headers=token)
        assert made.status_code == 200, made.text
        address, identity = new_agent(http)
        url = f"/wrap/{seller['operator']['id']}/x"
        statuses = [http.get(url, headers=identity).status_code for _ in range(20)]
    assert statuses.count(429) == 15

    def outcomes() -> dict[str, str]:
        told = http.post(f"/operator/trigger-sandbox-key/{address}").json()["testSummary"]
        return {probe["name"]: probe["outcome"] for probe in told["probes"]}

    eventually(outcomes, lambda found: found.get("wrapper_limits_obeyed") == "fail")
