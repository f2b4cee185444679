"""Sellers, `doctor` and admins see whether anybody can settle now, and asking costs little."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_e2e_command_line import assay
from tests.e2e.test_e2e_gas import lying
from tests.support.cases import first_then_slow
from tests.support.eventually import eventually
from tests.support.node_proxy import NodeProxy, node_proxy
from tests.support.quiet_server import QuietHandler, serving
from tests.support.shop import ENGINE, NETWORK, Dollars, Shop, Upstream, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

WRAPPERS = 25
PLENTY, NOTHING = hex(10**18), hex(0)


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


@pytest.fixture
def proxy(dollar_chain: Dollars) -> Iterator[NodeProxy]:
    with node_proxy(dollar_chain.url) as running:
        yield running


def warnings(store: Shop) -> list[list[str]]:
    """What the list says of each wrapper."""
    listed = store.http.get("/operator/endpoints", headers=dict(store.token))
    assert listed.status_code == 200, listed.text
    return [one["warnings"] for one in listed.json()]


def said_everywhere(store: Shop, path: str, said: str) -> None:
    """In the answers to making a wrapper, to changing it, and to listing it."""
    body = {
        "path": path,
        "pricePerCall": 0.5,
        "targetUrl": store.upstream.url,
        "paymentNetwork": NETWORK,
        "payoutAddress": "0x" + "5a" * 20,
    }
    token = dict(store.token)
    made = store.http.post("/operator/endpoints", json=body, headers=token).json()
    assert [one for one in made["warnings"] if said in one], made
    place = f"/operator/endpoints/{made['id']}"
    changed = store.http.patch(place, json={"description": "d"}, headers=token).json()
    assert [one for one in changed["warnings"] if said in one], changed
    assert [one for one in warnings(store)[0] if said in one]


def as_admin(store: Shop, folder: Path) -> dict[str, Any]:
    """The platform's stats."""
    done = assay("accounts", "set-role", "op@example.com", "admin", data_dir=folder)
    assert done.returncode == 0, done.stderr
    store.sign_up()
    answer = store.http.get("/operator/admin/stats", headers=dict(store.token))
    assert answer.status_code == 200, answer.text
    return answer.json()


def doctor(store: Shop, folder: Path) -> str:
    mine = {k: v for k, v in store.server.environment.items() if k.startswith("ASSAY_")}
    return assay("doctor", data_dir=folder, **mine).stdout


def test_an_empty_key_is_told_until_it_is_filled(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, tmp_path: Path
) -> None:
    said = {"eth_gasPrice": hex(10**9), "eth_getBalance": NOTHING}
    lying(proxy, said)
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
    with shop(tmp_path, dollar_chain, up, **rpc) as store:
        said_everywhere(store, "/echo/empty", f"{ENGINE.address} holds 0 coins on {NETWORK}")
        (key,) = as_admin(store, tmp_path)["settlingKeys"]
        assert (key["payable"], key["balance"]) == (0, "0.000000000000000000")
        told = assay("wrappers", "edit", wrapper_id(store), "--description", "e", **own(store))
        assert f"holds 0 coins on {NETWORK}" in told.stderr
        said["eth_getBalance"] = PLENTY
        eventually(lambda: warnings(store) == [[]])


@pytest.mark.slow
def test_a_price_of_gas_above_the_cap_is_told(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, tmp_path: Path
) -> None:
    lying(proxy, {"eth_gasPrice": hex(900 * 10**9), "eth_getBalance": PLENTY})
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
    with shop(tmp_path, dollar_chain, up, **rpc) as store:
        said_everywhere(store, "/echo/dear", f"Gas on {NETWORK} costs more now")


def test_a_network_without_an_answer_is_told_and_asked_once(
    dollar_chain: Dollars, up: Upstream, proxy: NodeProxy, tmp_path: Path
) -> None:
    """A node that takes questions and never answers holds up a list of many wrappers once."""
    asked: list[str] = []
    release = threading.Event()

    def hang(method: str) -> None:
        asked.append(method)
        release.wait(60)

    proxy.before = hang
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [proxy.url]})}
    try:
        with shop(tmp_path, dollar_chain, up, **rpc) as store:
            for place in range(WRAPPERS):
                store.wrap(f"/echo/{place}")
            assert len(warnings(store)) == WRAPPERS
            said_everywhere(store, "/echo/silent", f"No node of {NETWORK} answers")
            assert "127.0.0.1" not in json.dumps(warnings(store))
            # Made, listed and changed over fifty times; each exchange is of a few methods.
            assert len(asked) < WRAPPERS
            release.set()
            eventually(lambda: not [one for some in warnings(store) for one in some])
    finally:
        release.set()


def test_mpp_has_nodes_too(dollar_chain: Dollars, up: Upstream, tmp_path: Path) -> None:
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({"tempo:42431": ["http://127.0.0.1:9"]})}
    with shop(tmp_path, dollar_chain, up, **rpc) as store:
        mpp: dict[str, Any] = {"paymentNetwork": "tempo:42431", "paymentProtocol": "mpp"}
        store.wrap("/echo/mpp", timeoutMs=5000, **mpp)
        ((told,),) = warnings(store)
        assert "No node of tempo:42431 answers" in told
        nodes = as_admin(store, tmp_path)["paymentNodes"]
        assert nodes == [{"network": "tempo:42431", "answers": False}]


@dataclass
class Facilitator:
    """Lists what it settles."""

    url: str = ""
    status: int = 200
    listed: Any = field(default_factory=lambda: kinds("base-sepolia", "eip155:1"))
    asked: int = 0


def kinds(*networks: str, scheme: str = "exact") -> Any:
    return {"kinds": [{"x402Version": 2, "scheme": scheme, "network": one} for one in networks]}


@contextmanager
def facilitator() -> Iterator[Facilitator]:
    made = Facilitator()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            made.asked += 1
            body = json.dumps(made.listed).encode()
            self.send_response(made.status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as made.url:
        yield made


@pytest.mark.parametrize(
    ("status", "listed", "said"),
    first_then_slow(
        [
            (200, kinds("base", "solana:x"), f"does not list {NETWORK}"),
            (200, kinds("base-sepolia", scheme="upto"), f"does not list {NETWORK}"),
            (503, {}, "facilitator that settles payments for this service does not answer"),
        ]
    ),
)
def test_what_a_facilitator_does_not_settle_is_told(
    dollar_chain: Dollars, up: Upstream, tmp_path: Path, status: int, listed: Any, said: str
) -> None:
    with facilitator() as remote:
        remote.status, remote.listed = status, listed
        url = {"ASSAY_X402_FACILITATOR_URL": remote.url}
        with shop(tmp_path, dollar_chain, up, **url) as store:
            said_everywhere(store, "/echo/remote", said)
            for _ in range(WRAPPERS):
                warnings(store)
            seen = as_admin(store, tmp_path)
            assert seen["settlingKeys"] == []
            assert bool(seen["facilitator"]["problem"]) == (status != 200)
            assert remote.asked <= 3
            told = doctor(store, tmp_path)
            assert "x402 facilitator" in told
            assert ("no network of ours" in told) == (scheme_of(listed) == "upto")


def scheme_of(listed: Any) -> str:
    return listed["kinds"][0]["scheme"] if "kinds" in listed else ""


@pytest.mark.parametrize(
    ("status", "listed"), first_then_slow([(404, {}), (200, ["x"]), (200, kinds("base-sepolia"))])
)
def test_a_facilitator_that_lists_the_network_or_says_nothing_is_not_warned_of(
    dollar_chain: Dollars, up: Upstream, tmp_path: Path, status: int, listed: Any
) -> None:
    with facilitator() as remote:
        remote.status, remote.listed = status, listed
        url = {"ASSAY_X402_FACILITATOR_URL": remote.url}
        with shop(tmp_path, dollar_chain, up, **url) as store:
            store.wrap("/echo/remote")
            assert warnings(store) == [[]]


def test_doctor_tells_of_each_payment_network_that_is_sold_whether_a_node_answers(
    dollar_chain: Dollars, up: Upstream, tmp_path: Path
) -> None:
    """A facilitator settles, and yet our own nodes are the witnesses; MPP settles through them."""
    nodes = {NETWORK: [dollar_chain.url], "tempo:42431": ["http://127.0.0.1:9"]}
    with facilitator() as remote:
        remote.listed = kinds("base-sepolia")
        rpc = {"ASSAY_PAYMENT_RPC": json.dumps(nodes), "ASSAY_X402_FACILITATOR_URL": remote.url}
        with shop(tmp_path, dollar_chain, up, **rpc) as store:
            assert "payment node of" not in doctor(store, tmp_path)  # nothing is sold yet
            store.wrap("/echo/remote")
            mpp: dict[str, Any] = {"paymentNetwork": "tempo:42431", "paymentProtocol": "mpp"}
            store.wrap("/echo/mpp", timeoutMs=5000, **mpp)
            told = doctor(store, tmp_path).splitlines()
            ours, tempo = (
                next(place for place, line in enumerate(told) if f"payment node of {one}" in line)
                for one in (NETWORK, "tempo:42431")
            )
            assert told[ours].endswith("answers")
            assert "none answers: nobody can settle payments there" in told[tempo]
            assert "ASSAY_PAYMENT_RPC" in "".join(told[tempo : tempo + 2])


def wrapper_id(store: Shop) -> str:
    return store.http.get("/operator/endpoints", headers=dict(store.token)).json()[0]["id"]


def own(store: Shop) -> dict[str, Any]:
    """The service's settings, for a command."""
    mine = {k: v for k, v in store.server.environment.items() if k.startswith("ASSAY_")}
    return {"data_dir": Path(mine.pop("ASSAY_DATA_DIR")), **mine}
