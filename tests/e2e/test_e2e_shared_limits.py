"""One limit over two serving processes: one PostgreSQL, one Valkey, real sockets."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from assay.wrappers.route_table import MISS_BELIEVED_S
from tests.support.assay import Served, operator, served
from tests.support.cases import first_then_slow
from tests.support.commands import command
from tests.support.databases import migrated_postgresql
from tests.support.eventually import eventually
from tests.support.shop import NO_CHAIN, Shop, upstream
from tests.support.valkey import PASSWORD, ValkeyServer, valkey

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

GIVEN_BACK_S = 2.0
"""After which nothing is in hand that is not used."""


@dataclass
class Pair:
    servers: Sequence[Served]
    shop: Shop

    def paths(self, url: str) -> list[str]:
        """A new wrapper's address at each process, when both know of it."""
        time.sleep(MISS_BELIEVED_S + 0.1)
        path = url.removeprefix(self.servers[0].address)
        return [f"{server.address}{path}" for server in self.servers]

    def said(self, event: str) -> list[int]:
        """How often each process logged the event."""
        return [
            sum(json.loads(line)["event"].startswith(event) for line in server.said().splitlines())
            for server in self.servers
        ]


@contextmanager
def two_processes(folder: Path, server: ValkeyServer, **settings: str) -> Iterator[Pair]:
    given = {
        "ASSAY_DATABASE_URL": migrated_postgresql(),
        "ASSAY_STATE_URL": server.url,
        "ASSAY_WRAPPER_PER_MINUTE": "1000000",
        "ASSAY_WRAPPER_UNREAD_MIB": "1000000",
        **settings,
    }
    with (
        upstream() as up,
        served(folder, NO_CHAIN, **given) as one,
        served(folder, NO_CHAIN, **given) as other,
        httpx2.Client(base_url=one.address, timeout=40, trust_env=False) as http,
    ):
        made = Shop(one, http, None, up)  # type: ignore[arg-type] - no dollars here
        made.sign_up()
        yield Pair((one, other), made)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    valkey().say("FLUSHALL")
    with two_processes(tmp_path_factory.mktemp("two"), valkey()) as made:
        yield made


def many(url: str, times: int, headers: Mapping[str, str] | None = None) -> list[httpx2.Response]:
    """One after the other over one connection."""
    with httpx2.Client(timeout=40, trust_env=False, headers=headers) as http:
        return [http.get(url) for _ in range(times)]


def spread(
    urls: Sequence[str], times: int, headers: Mapping[str, str] | None = None
) -> list[httpx2.Response]:
    """That many calls to each address, at once."""
    with ThreadPoolExecutor(len(urls)) as pool:
        done = pool.map(lambda url: many(url, times, headers), urls)
        return [answer for some in done for answer in some]


def statuses(answers: Sequence[httpx2.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


@pytest.mark.parametrize("limit", first_then_slow([7, 1, 60, 400]))
def test_one_agent_gets_the_limit_over_both_processes_and_not_twice_that(
    pair: Pair, limit: int
) -> None:
    """Less an eighth at most while the other holds it; what was held is used a moment later."""
    urls = pair.paths(pair.shop.wrap(f"/spread-{limit}", 0, rateLimit=limit))
    begun = time.monotonic()
    counted = statuses(spread(urls * 2, max(2, limit * 3 // 4)))
    assert set(counted) == {200, 429}
    assert limit - limit // 8 <= counted[200] <= limit
    for url in urls:
        time.sleep(GIVEN_BACK_S)
        counted += statuses(many(url, limit))
    assert time.monotonic() - begun < 60
    assert counted[200] == limit
    assert pair.shop.upstream.calls(f"/spread-{limit}") == limit


def test_a_refusal_says_when_to_come_again_and_the_headers_what_is_left(pair: Pair) -> None:
    urls = pair.paths(pair.shop.wrap("/headers", 0, rateLimit=3))
    answers = [httpx2.get(urls[number % 2], trust_env=False) for number in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert {answer.headers["ratelimit-limit"] for answer in answers} == {"3"}
    assert 50 <= int(answers[3].headers["retry-after"]) <= 62
    assert answers[3].headers["retry-after"] == answers[3].headers["ratelimit-reset"]
    assert answers[3].json()["error"] == "rate_limit_exceeded"


def test_agents_and_wrappers_do_not_use_up_each_others_limit(pair: Pair) -> None:
    for path in ("/own-a", "/own-b"):
        urls = pair.paths(pair.shop.wrap(path, 0, rateLimit=4))
        assert [answer.status_code for answer in many(urls[1], 5)] == [200] * 4 + [429]


def test_where_the_store_is_killed_each_process_keeps_the_limit_by_itself_and_says_so_once(
    tmp_path: Path,
) -> None:
    store = ValkeyServer()
    try:
        with two_processes(tmp_path, store) as pair:
            urls = pair.paths(pair.shop.wrap("/outage", 0, rateLimit=20))
            assert statuses(spread(urls, 5)) == {200: 10}
            store.kill()
            time.sleep(GIVEN_BACK_S)
            for _ in range(2):  # what each admitted before still counts
                counted = [statuses(many(url, 20))[200] for url in urls]
            assert counted == [0, 0]
            assert pair.shop.upstream.calls("/outage") == 40
            assert pair.said("the shared state is out of reach") == [1, 1]
            store.start()
            eventually(lambda: pair.said("limits are shared again") == [1, 1])
            assert [statuses(many(url, 3)) for url in urls] == [{429: 3}, {429: 3}]
            fresh = pair.paths(pair.shop.wrap("/after", 0, rateLimit=20))
            assert statuses(spread(fresh, 30))[200] <= 20
            store.say("FLUSHALL")
            assert sum(statuses(many(url, 30))[200] for url in fresh) <= 20
            logged = "".join(server.said() for server in pair.servers)
            assert PASSWORD not in logged
    finally:
        store.stop()


@pytest.mark.slow
def test_a_process_that_ends_gives_back_what_it_has_in_hand(tmp_path: Path) -> None:
    with two_processes(tmp_path, valkey()) as pair:
        one, other = pair.paths(pair.shop.wrap("/ends", 0, rateLimit=120))
        assert statuses(many(one, 40)) == {200: 40}
        assert pair.servers[0].stop() == 0
        assert statuses(spread([other] * 4, 25))[200] == 80


@pytest.mark.slow
def test_a_store_that_hangs_holds_up_nobody_for_long(tmp_path: Path) -> None:
    store = ValkeyServer()
    try:
        with two_processes(tmp_path, store) as pair:
            url, _ = pair.paths(pair.shop.wrap("/hang", 0, rateLimit=1000))
            many(url, 1)
            store.freeze()
            try:
                time.sleep(GIVEN_BACK_S)
                begun = time.monotonic()
                assert statuses(many(url, 10)) == {200: 10}
                assert time.monotonic() - begun < 3
            finally:
                store.thaw()
    finally:
        store.stop()


def assay(*words: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    made = {"ASSAY_DATA_DIR": str(folder), "ASSAY_PORT": "0", **settings}
    made |= {"ASSAY_CHAINS": json.dumps(NO_CHAIN), "ASSAY_DEFAULT_CHAIN": "local"}
    return command(*words, environment=made | {"PATH": "/usr/bin:/bin", "COLUMNS": "200"})


def degraded(server: Served) -> list[str]:
    answer = httpx2.get(f"{server.address}/operator/health", timeout=20, trust_env=False)
    return answer.json().get("degraded", [])


def test_processes_start_without_the_store_and_share_their_limits_once_it_is_there(
    tmp_path: Path,
) -> None:
    store = ValkeyServer()
    store.kill()
    try:
        with two_processes(tmp_path, store) as pair:
            assert pair.said("the shared state is out of reach") == [1, 1]
            assert ["valkey" in degraded(server) for server in pair.servers] == [True, True]
            urls = pair.paths(pair.shop.wrap("/alone", 0, rateLimit=5))
            assert [statuses(many(url, 8))[200] for url in urls] == [5, 5]
            store.start()
            eventually(lambda: pair.said("limits are shared again") == [1, 1])
            assert ["valkey" in degraded(server) for server in pair.servers] == [False, False]
            fresh = pair.paths(pair.shop.wrap("/shared", 0, rateLimit=20))
            assert statuses(spread(fresh, 30))[200] <= 20
            logged = "".join(server.said() for server in pair.servers)
            assert PASSWORD not in logged
    finally:
        store.stop()


def test_commands_that_serve_nothing_need_no_store(tmp_path: Path) -> None:
    url = f"valkey://:{PASSWORD}@127.0.0.1:9/0"
    done = assay("accounts", "list", folder=tmp_path, ASSAY_STATE_URL=url)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_url_of_another_kind_is_refused_with_a_sentence(tmp_path: Path) -> None:
    done = assay("serve", folder=tmp_path, ASSAY_STATE_URL=f"redis://:{PASSWORD}@h:6379")
    assert done.returncode == 78
    assert "ASSAY_STATE_URL must be valkey://host:6379/0" in done.stderr
    assert done.stderr.count("\n") == 1
    assert PASSWORD not in done.stderr


def test_doctor_looks_at_the_shared_state(tmp_path: Path) -> None:
    works = assay("doctor", folder=tmp_path, ASSAY_STATE_URL=valkey().url)
    assert "works  shared state (valkey)" in works.stdout
    wrong = valkey().url.replace(PASSWORD, "hush-another")
    for url in (wrong, f"valkey://:{PASSWORD}@127.0.0.1:9"):
        fails = assay("doctor", folder=tmp_path, ASSAY_STATE_URL=url)
        assert "fails  shared state (valkey)" in fails.stdout
        assert "fix: start it, or correct ASSAY_STATE_URL" in fails.stdout
        assert "works  database (sqlite)" in fails.stdout
        assert "hush" not in fails.stdout + fails.stderr


def test_the_traffic_limit_of_an_address_and_of_an_operator_is_one_over_both_processes(
    tmp_path: Path,
) -> None:
    given = {"ASSAY_ANONYMOUS_PER_MINUTE": "40", "ASSAY_KEYED_PER_MINUTE": "24"}
    valkey().say("FLUSHALL")
    with two_processes(tmp_path, valkey(), **given) as pair:
        key = operator(pair.shop.http, "second@example.com")
        hooks = [f"{server.address}/operator/webhooks" for server in pair.servers]
        for url in hooks:
            assert httpx2.get(url, headers=key, trust_env=False).status_code == 200
        counted = statuses(spread(hooks, 24, key))
        assert set(counted) == {200, 429}
        assert 24 - 24 // 8 - 2 <= counted[200] <= 24 - 2
        public = [f"{server.address}/api" for server in pair.servers]
        answers = spread(public, 40)
        before = 3  # two accounts were made, an owner logged in
        assert 40 - 40 // 8 - before <= statuses(answers)[200] <= 40
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.json()["error"] == "rate_limited"
        assert 1 <= int(refused.headers["retry-after"]) <= 62
