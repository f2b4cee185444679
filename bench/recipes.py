"""What asking the gate adds to a request: each recipe beside the same proxy without it.

.venv/bin/python bench/recipes.py [--calls 500] [--rounds 5]

One request at a time, over a connection that stays open, to an API that answers at once. Requests
differ in path, query, request id and `traceparent`, and 20 agents with sessions call in turn. Both
sides run in turns; printed are milliseconds at the median of the rounds, and what the gate adds.
"""

import argparse
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path

import httpx2
from eth_account import Account

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.support import reverse_proxies  # noqa: E402
from tests.support.assay import operator, served, session  # noqa: E402
from tests.support.eventually import eventually  # noqa: E402
from tests.support.recipes import PROXIES, RECIPES, Gated, proxy, traefik  # noqa: E402
from tests.support.reverse_proxies import Command, Route, free_port, running  # noqa: E402
from tests.support.shop import NO_CHAIN  # noqa: E402

AGENTS = 20
ALONE = {
    "nginx": "nginx-plain",
    "nginx cached": "nginx-plain",
    "caddy": "caddy",
    "haproxy": "haproxy",
    "envoy": "envoy",
    "envoy grpc": "envoy",
}


@contextmanager
def api() -> Iterator[int]:
    """An API that answers at once."""

    def configure(folder: Path, routes: Sequence[Route]) -> Command:
        [route] = routes
        server = f"server {{ listen 127.0.0.1:{route.listen}; location / {{ return 200 'ok'; }} }}"
        return reverse_proxies.nginx(folder, server)

    with running(configure, [0]) as [address]:
        yield int(address.rpartition(":")[2])


def traefik_alone(folder: Path, routes: Sequence[Route]) -> Command:
    """Traefik without the gate."""
    command = traefik(folder, routes[0], Gated(1, "svc_op_unused", 1))
    file = folder / "assay.yml"
    text = file.read_text("utf-8")
    used = next(line for line in text.splitlines() if "middlewares: [" in line)
    assert used in (RECIPES / "traefik/assay.yml").read_text("utf-8")
    file.write_text(text.replace(used + "\n", ""), "utf-8")
    return command


def one_round(http: httpx2.Client, agents: Sequence[dict[str, str]], calls: int) -> list[float]:
    """Milliseconds of each call."""
    found: list[float] = []
    for number in range(calls):
        headers = {
            **agents[number % len(agents)],
            "x-request-id": secrets.token_hex(16),
            "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
        }
        path = f"/things/{secrets.randbelow(1000)}?page={number}"
        begun = time.perf_counter()
        answer = http.get(path, headers=headers)
        found.append((time.perf_counter() - begun) * 1000)
        assert answer.status_code == 200, answer.text
    return found


def compare(
    name: str, gated: str, alone: str, agents: Sequence[dict[str, str]], calls: int, rounds: int
) -> None:
    """Print one row."""
    figures: dict[str, list[float]] = {}
    with httpx2.Client(base_url=gated) as asking, httpx2.Client(base_url=alone) as plain:
        for http in (asking, plain):
            one_round(http, agents, len(agents))
        for _ in range(rounds):
            for side, http in (("with", asking), ("alone", plain)):
                took = statistics.quantiles(one_round(http, agents, calls), n=100)
                figures.setdefault(f"{side} p50", []).append(took[49])
                figures.setdefault(f"{side} p99", []).append(took[98])
    middle = {side: statistics.median(values) for side, values in figures.items()}
    added = middle["with p50"] - middle["alone p50"]
    shown = "  ".join(f"{side} {value:6.2f}" for side, value in middle.items())
    print(f"{name:14} {shown}  added at p50 {added:5.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="What asking the gate adds to a request.")
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        grpc = free_port()
        bind = {"ASSAY_EXT_AUTHZ_BIND": str(grpc)}
        service = stack.enter_context(served(folder / "data", NO_CHAIN, **bind))
        http = stack.enter_context(httpx2.Client(base_url=service.address, timeout=60))
        key = operator(http)["authorization"].removeprefix("Bearer ")
        account = {"email": "op@example.com", "password": "correct horse battery"}
        token = http.post("/operator/login", json=account).json()["token"]
        owner = {"authorization": f"Bearer {token}"}
        (made,) = http.get("/operator/keys", headers=owner).json()
        policies = {"policies": {"default": {"minScore": 0}}}
        path = f"/operator/keys/{made['id']}/gate-policies"
        http.put(path, headers=owner, json=policies).raise_for_status()
        agents = [session(http, Account.create().key.hex()) for _ in range(AGENTS)]
        port = stack.enter_context(api())
        gated = Gated(int(service.address.rpartition(":")[2]), key, grpc)
        print(f"{asked.rounds} rounds of {asked.calls} calls, {AGENTS} agents; milliseconds")
        for name in PROXIES:
            if name not in ALONE and name != "traefik":
                continue
            configure = (
                traefik_alone if name == "traefik" else reverse_proxies.REVERSE_PROXIES[ALONE[name]]
            )
            with (
                proxy(name, port, gated, folder / "log") as with_gate,
                running(configure, [port]) as [alone],
            ):
                eventually(lambda: httpx2.get(alone).status_code == HTTPStatus.OK)
                compare(name, with_gate, alone, agents, asked.calls, asked.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
