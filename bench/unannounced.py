"""Whether an agent can tell our unannounced visits from its customers.

    pip install scikit-learn
    ./.venv/bin/python bench/unannounced.py                       # 10,000 visits: about two hours
    ./.venv/bin/python bench/unannounced.py --visits 400          # a first look
    ./.venv/bin/python bench/unannounced.py --texts prompts.txt   # real user texts, one a line
    ./.venv/bin/python bench/unannounced.py --show                # what one visit of each kind does

Visits of ours and sessions of stock clients (a2a-sdk, mcp, httpx) go to the same honest agents over
TLS; everything an agent can see is written down. A classifier is trained on one half and tested on
the other, for each group of features by itself. Printed: balanced accuracy, 0.5 is a coin. Agents
and texts differ from session to session; pauses are drawn on both sides and shortened alike.
"""

import argparse
import asyncio
import hashlib
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpcore2
import httpx
import httpx2
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, SendMessageRequest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from assay.common.clock import SystemClock  # noqa: E402
from assay.evaluation.ports import SignalDependencies, Sources  # noqa: E402
from assay.evaluation.signals.sandbox import SIGNAL  # noqa: E402
from assay.net.egress.client import GuardedHttp  # noqa: E402
from assay.net.egress.url import EgressPolicy  # noqa: E402
from assay.probing.clients.dialers import StockDialers  # noqa: E402
from assay.probing.probes import PROBES  # noqa: E402
from assay.probing.unannounced import Manner, pauses  # noqa: E402
from assay.registries.model import (  # noqa: E402
    OnchainAgent,
    Service,
    Subject,
)
from assay.registries.registration import parse_registration  # noqa: E402
from tests.ground_truth.a2a_parts import face_of  # noqa: E402
from tests.ground_truth.honest_a2a import on_library, specialist  # noqa: E402
from tests.ground_truth.honest_http import fastapi_at  # noqa: E402
from tests.ground_truth.honest_mcp import library  # noqa: E402
from tests.ground_truth.knowledge import DOMAINS  # noqa: E402
from tests.ground_truth.site import Build, SimulatedClock, Site  # noqa: E402
from tests.support.fakes.trust import NETWORK, FakeChain  # noqa: E402
from tests.support.recorder import RecordedRequest, Recorder, Session, new_folder  # noqa: E402

AT_ONCE = 3
GROUPS = ("headers", "tls", "version", "timing", "order", "content")
PAUSE_S = 2.0
"""Median of ours, as the setting has it by default."""
SHORTER = 50.0
"""Pauses of customers are this many times shorter than real ones, and so are ours."""

KINDS: Mapping[str, Callable[[str], Build]] = {
    "a2a": lambda key: on_library(face_of(DOMAINS[key]), specialist(key)),
    "mcp": lambda key: library(key, "days"),
    "http": lambda key: fastapi_at(key, "OpenAPI", whole=True),
}
"""Agents by what they speak, of any domain."""


class Ground:
    """What both sides meet."""

    def __init__(self, folder: Path, texts: Sequence[str]) -> None:
        self.recorder = Recorder(folder)
        self.clock = SimulatedClock(folder / "clock")
        self.texts = texts
        policy = EgressPolicy(allow_private=True, require_https=True)
        tls = httpcore2.default_ssl_context()
        tls.load_verify_locations(self.recorder.certificate)
        self.http = GuardedHttp(policy, tls=tls)
        # What the clients trust by default, and our certificate.
        self.theirs, self.theirs2 = httpx.create_ssl_context(), httpx2.create_ssl_context()
        for context in (self.theirs, self.theirs2):
            context.load_verify_locations(self.recorder.certificate)
        self.probes = PROBES

    def site(self, url: str, key: str) -> Site:
        """An agent's own address."""
        registry = f"eip155:84532:{NETWORK.agent_registry}"
        return Site(key, url, 7, "0x" + "ab" * 20, registry, self.clock, {})


class Planned:
    """Every visit is unannounced."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        self._ground = ground
        self._chance = chance

    async def plan(self, _subject: Subject, _endpoints: Sequence[str]) -> Manner:
        pace = pauses(PAUSE_S / SHORTER, self._chance)
        return Manner("unannounced", self._ground.http, StockDialers(None), (), pace)

    async def begin(self, _subject: Subject, _nonce: str) -> None:
        """Nothing audits these visits."""

    async def keep_robots(self, _endpoint: str, _prefixes: Sequence[str]) -> None:
        raise AssertionError("an unannounced visit reads no robots.txt")


async def visited(ground: Ground, kind: str, chance: random.Random) -> Session:
    """One visit of ours."""
    key = chance.choice(sorted(DOMAINS))
    async with ground.recorder.session() as session:
        site = ground.site(session.url, key)
        built: Any = KINDS[kind](key)(site)
        session.app = built.app
        services = tuple(Service(name, url) for name, url in built.services)
        raw = {"type": "x", "name": key, "description": key, "active": True, "services": []}
        file = replace(parse_registration(json.dumps(raw).encode()), services=services)
        agent = OnchainAgent(NETWORK, "7", site.wallet, site.wallet, "data:,", file, None)
        needs = SignalDependencies(
            FakeChain(),  # type: ignore[arg-type]
            ground.http,
            StockDialers(None),
            ground.probes,
            SystemClock(),
            60.0,
            sources=Sources(visits=Planned(ground, chance)),  # type: ignore[arg-type]
        )
        await SIGNAL.collect(Subject(NETWORK, "7", site.wallet, agent), needs)
        return session


async def bought(
    ground: Ground, kind: str, chance: random.Random, calls: int | None = None
) -> Session:
    """One customer's session, by the stock client of its kind."""
    key = chance.choice(sorted(DOMAINS))
    async with ground.recorder.session() as session:
        built: Any = KINDS[kind](key)(ground.site(session.url, key))
        session.app = built.app
        asked = [_text(ground, key, chance) for _ in range(calls or _calls(chance))]
        await CUSTOMERS[kind](ground, session.url, built.services[0][1], asked, chance)
        return session


def _calls(chance: random.Random) -> int:
    """How many things a customer asks for: a median of five."""
    return max(1, min(20, round(chance.lognormvariate(math.log(5), 0.7))))


def _text(ground: Ground, key: str, chance: random.Random) -> str:
    return chance.choice([*ground.texts, *DOMAINS[key].examples * 3])


async def _pause(chance: random.Random) -> None:
    """A program asks again at once, or when its own model has thought."""
    if chance.random() < 0.8:
        await asyncio.sleep(chance.lognormvariate(math.log(3.0), 0.8) / SHORTER)


async def _a2a(
    ground: Ground, url: str, _endpoint: str, texts: Sequence[str], chance: random.Random
) -> None:
    async with httpx.AsyncClient(verify=ground.theirs, trust_env=False, timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        config = ClientConfig(streaming=False, httpx_client=http)
        client = ClientFactory(config).create(card)
        for text in texts:
            await _pause(chance)
            said = Message(message_id=_uuid(chance), role=Role.ROLE_USER, parts=[Part(text=text)])
            async for _ in client.send_message(SendMessageRequest(message=said)):
                break


async def _mcp(
    ground: Ground, _url: str, endpoint: str, texts: Sequence[str], chance: random.Random
) -> None:
    async with (
        httpx2.AsyncClient(verify=ground.theirs2, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(endpoint, http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
        if chance.random() < 0.5:  # clients of desktops and editors show these too
            await client.list_prompts()
            await client.list_resources()
        for text in texts:
            await _pause(chance)
            tool = chance.choice(tools)
            names = list(tool.input_schema.get("properties", {}))
            await client.call_tool(tool.name, {names[0]: text} if names else {})


async def _http(
    ground: Ground, url: str, _endpoint: str, texts: Sequence[str], chance: random.Random
) -> None:
    async with httpx.AsyncClient(verify=ground.theirs, trust_env=False, timeout=60) as http:
        document = (await http.get(url + "/openapi.json")).json()
        listed = [
            (path, [p["name"] for p in what["get"].get("parameters", []) if p["in"] == "query"])
            for path, what in document["paths"].items()
            if "get" in what
        ]
        for text in texts:
            await _pause(chance)
            path, names = chance.choice(listed)
            await http.get(url + path, params=dict.fromkeys(names[:1], text))


CUSTOMERS = {"a2a": _a2a, "mcp": _mcp, "http": _http}


def _uuid(chance: random.Random) -> str:
    h = f"{chance.getrandbits(128):032x}"
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


# What an agent sees, as tokens and numbers


def features(session: Session, group: str) -> Counter[str]:
    """A group's features of a session."""
    made: Counter[str] = Counter()
    if group in _PER_REQUEST:
        listed = [token for heard in session.requests for token in _PER_REQUEST[group](heard)]
        made.update(listed if group == "content" else set(listed))
    if group == "tls":
        made.update({token for hello in session.hellos for token in _hello(hello)})
    if group == "timing":
        made.update(_timing(session))
    if group == "order":
        words = ["^", *(_step(h) for h in session.requests), "$"]
        made.update(f"{a} > {b}" for a, b in pairwise(words))
        made["all"] = len(words)
        made["connections"] = len(session.hellos)
    return made


def _headers(heard: RecordedRequest) -> list[str]:
    kind = f"{heard.method} {'document' if not heard.body else 'call'}"
    names = [name for name, _ in heard.headers]
    fixed = {"user-agent", "accept", "accept-encoding", "connection", "content-type"}
    said = [f"{kind} {n}={v}" for n, v in heard.headers if n.lower() in fixed]
    return [f"{kind} {' '.join(names)}", *said]


def _step(heard: RecordedRequest) -> str:
    """What a request does, without what it says."""
    method = _rpc(heard).get("method", "")
    path = heard.target.partition("?")[0]
    return f"{heard.method} {path} {method if isinstance(method, str) else ''}".strip()


def _rpc(heard: RecordedRequest) -> Mapping[str, Any]:
    try:
        body = json.loads(heard.body) if heard.body else {}
    except ValueError:
        return {"method": "(no JSON)"}
    return body if isinstance(body, dict) else {"method": "(batch)"}


def _words(heard: RecordedRequest) -> list[str]:
    texts = [heard.target.partition("?")[2], *_leaves(_rpc(heard))]
    words = [w for text in texts for w in text.lower().replace("+", " ").split()]
    shapes = [f"chars {min(9, len(t) // 40)}" for t in texts]
    return words + shapes


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value] if isinstance(value, str) else []


_PER_REQUEST: Mapping[str, Callable[[RecordedRequest], list[str]]] = {
    "headers": _headers,
    "version": lambda heard: [heard.version],
    "content": _words,
}


def _timing(session: Session) -> dict[str, int]:
    times = [h.at_s for h in session.requests]
    gaps = [b - a for a, b in pairwise(times)]
    slots = Counter(int(math.log2(max(g, 1e-5)) + 17) for g in gaps)
    return {f"gap {slot}": round(10 * count / len(gaps)) for slot, count in slots.items()}


def _hello(hello: bytes) -> list[str]:
    """Everything of a ClientHello but what is random in it. Source: RFC 8446, section 4.1.2."""
    at = 4 + 2 + 32
    at += 1 + hello[at]
    size = int.from_bytes(hello[at : at + 2], "big")
    ciphers, at = hello[at + 2 : at + 2 + size].hex(), at + 2 + size
    at += 1 + hello[at] + 2
    found = [f"ciphers {ciphers}"]
    order: list[int] = []
    while at + 4 <= len(hello):
        name = int.from_bytes(hello[at : at + 2], "big")
        size = int.from_bytes(hello[at + 2 : at + 4], "big")
        order.append(name)
        if name not in {0, 41, 51}:  # name of the server, and what is fresh in each connection
            found.append(f"{name}: {hello[at + 4 : at + 4 + size].hex()}")
        at += 4 + size
    return [*found, f"extensions {order}"]


def _vector(made: Mapping[str, int], width: int = 512) -> list[float]:
    row = [0.0] * width
    for name, count in made.items():
        row[int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest()) % width] += count
    return row


def accuracy(ours: Sequence[Session], theirs: Sequence[Session], group: str) -> float:
    """Balanced accuracy on sessions that were not trained on."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - only where it is used
    from sklearn.metrics import balanced_accuracy_score  # noqa: PLC0415

    rows = [
        (_vector(features(s, group)), who) for who, some in ((1, ours), (0, theirs)) for s in some
    ]
    random.Random(1).shuffle(rows)
    half = len(rows) // 2
    learnt = RandomForestClassifier(200, min_samples_leaf=3, random_state=1, n_jobs=1)
    learnt.fit([row for row, _ in rows[:half]], [who for _, who in rows[:half]])
    guessed = learnt.predict([row for row, _ in rows[half:]])
    return float(balanced_accuracy_score([who for _, who in rows[half:]], guessed))


def telling(ours: Sequence[Session], theirs: Sequence[Session], group: str) -> list[str]:
    """The features that tell most, by how often each side has them."""
    counts = []
    for some in (ours, theirs):
        seen: Counter[str] = Counter()
        for session in some:
            seen.update(set(features(session, group)))
        counts.append(seen)
    names = set(counts[0]) | set(counts[1])
    far = {n: counts[0][n] / len(ours) - counts[1][n] / len(theirs) for n in names}
    return [f"{far[n]:+.2f} {n[:150]}" for n in sorted(names, key=lambda n: -abs(far[n]))[:5]]


async def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--visits", type=int, default=10_000, help="of ours, and of customers")
    wanted.add_argument("--texts", type=Path, help="user texts, one a line")
    wanted.add_argument("--kinds", default="a2a,mcp,http")
    wanted.add_argument("--seed", type=int, default=1)
    wanted.add_argument("--show", action="store_true", help="one of each, request by request")
    args = wanted.parse_args()
    texts = args.texts.read_text("utf-8").splitlines() if args.texts else []
    async with AsyncExitStack() as stack:
        ground = Ground(Path(stack.enter_context(new_folder())), [t for t in texts if t.strip()])
        stack.push_async_callback(ground.http.aclose)
        for kind in args.kinds.split(","):
            began_s = time.monotonic()
            number = 1 if args.show else args.visits // len(args.kinds.split(","))
            ours, theirs = await _both(ground, kind, number, args.seed)
            if args.show:
                _show(kind, ours[0], theirs[0])
                continue
            print(
                f"{kind}: {number} visits and as many customers, {time.monotonic() - began_s:.0f} s"
            )
            for group in GROUPS:
                print(f"  {group:9} {accuracy(ours, theirs, group):.3f}")
                for line in telling(ours, theirs, group):
                    print(f"            {line}")


async def _both(
    ground: Ground, kind: str, number: int, seed: int
) -> tuple[list[Session], list[Session]]:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(who: Callable[..., Any], index: int) -> Session:
        async with limit:
            return await who(ground, kind, random.Random(f"{seed} {kind} {who.__name__} {index}"))

    async with asyncio.TaskGroup() as group:
        ours = [group.create_task(one(visited, n)) for n in range(number)]
        theirs = [group.create_task(one(bought, n)) for n in range(number)]
    return [task.result() for task in ours], [task.result() for task in theirs]


def _show(kind: str, ours: Session, theirs: Session) -> None:
    for who, session in (("ours", ours), ("customer", theirs)):
        print(f"{kind}, {who}: {len(session.hellos)} connections")
        begun_s = session.requests[0].at_s if session.requests else 0.0
        for heard in session.requests:
            print(f"  {heard.at_s - begun_s:7.3f} {heard.connection} {_step(heard)}")
            print(f"          {heard.headers}")
            print(
                f"          {heard.target.partition('?')[2]} {heard.body[:300].decode('latin-1')}"
            )


if __name__ == "__main__":
    asyncio.run(main())
