"""Paid calls under random kills: a service that starts in an instant, payers that never give up,
and a table of what became of the money.

`tests/e2e/test_e2e_kills.py` runs it for some seconds, `bench/kills.py` for as long as you like.
"""

import asyncio
import base64
import contextlib
import json
import os
import random
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
from eth_account import Account

from assay_demo.chain.accounts import LocalAccount
from assay_demo.chain.registries import topic
from tests.support.databases import migrated_postgresql
from tests.support.forked import ROOT
from tests.support.seller_books import COLUMNS, Books, books
from tests.support.shop import (
    ENGINE,
    NETWORK,
    NO_CHAIN,
    PLATFORM,
    SELLER,
    Dollars,
    Shop,
    Upstream,
    dollars_on,
    encoded,
    upstream,
)
from tests.support.starting import HUNG_S
from tests.support.tempo import Tempo
from tests.support.tempo_shop import SELLER as TEMPO_SELLER
from tests.support.tempo_shop import signed

CENT = 10_000
SETTINGS = {"ASSAY_SETTLEMENT_LEASE_S": "4", "ASSAY_SETTLEMENT_S": "6"}
SECRETS = {
    f"ASSAY_{name}": name.lower() * 4
    for name in (
        "JWT_SECRET",
        "SESSION_SECRET",
        "SNAPSHOT_SECRET",
        "SIGNING_SECRET",
        "PAYMENT_SECRET",
        "UPSTREAM_SECRETS",
    )
}
"""What processes of one service have in common."""

FEE_RATE = "0.05"
SLOW_S = 1.0
SERVED_MIN = 5
"""Calls that are served before a campaign ends."""
LIFE_S, MPP_LIFE_S = 5.0, 10.0
"""How long a process lives at most; stock MPP clients take seconds to sign."""
_FORKING = """
import json, os, sys
from assay.__main__ import main
import assay.app.web, assay.app.protocol, assay.cli.command, uvicorn  # ready to be forked
sys.stdout.write("ready\\n"); sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.environ.update(asked["environment"])
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        sys.argv = ["assay", "serve"]
        main()
        os._exit(0)
    sys.stdout.write(f"{child}\\n"); sys.stdout.flush()
    while True:  # who has ended is no zombie for long
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
"""
"""Imports the service once and forks it whenever it is asked to."""


@dataclass
class Life:
    """One process of the service, killed and started again on the same data and port."""

    parent: "subprocess.Popen[str]"
    environment: Mapping[str, str]
    port: int
    log: Path
    pid: int = 0
    kills: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns once it answers."""
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        asked = {"environment": {**self.environment, "ASSAY_PORT": str(self.port)}}
        self.parent.stdin.write(json.dumps({**asked, "log": str(self.log)}) + "\n")
        self.parent.stdin.flush()
        self.pid = int(self.parent.stdout.readline())
        deadline = time.monotonic() + HUNG_S
        while not _answers(self.address):
            is_well = _is_running(self.pid) and time.monotonic() < deadline
            assert is_well, self.log.read_text("utf-8")[-4000:]
            time.sleep(0.02)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.kills += 1
        while _is_running(self.pid):  # or it would be taken for the next one
            time.sleep(0.005)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)


def _is_running(pid: int) -> bool:
    """Whether a process is there, and no zombie: threads of one that is keep its port."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text("ascii")
        threads = len([*Path(f"/proc/{pid}/task").iterdir()])
    except (FileNotFoundError, ProcessLookupError):
        return False
    return threads > 1 or said.rpartition(")")[2].split()[0] != "Z"


def _answers(address: str) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{address}/operator/health", timeout=5).status_code == 200
    return False


def _port() -> int:
    """A free port that no outgoing connection is given while its server is being started."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


@contextmanager
def lives(
    folder: Path, environments: Sequence[Mapping[str, str]], ports: Sequence[int]
) -> Iterator[list[Life]]:
    """Processes of the service, started; ended at the end of the block."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    parent = subprocess.Popen(
        [sys.executable, "-c", _FORKING],
        env=plain | {"PYTHONPATH": str(ROOT / "src")},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    made: list[Life] = []
    try:
        assert parent.stdout.readline() == "ready\n"
        for place, (given, port) in enumerate(zip(environments, ports, strict=True)):
            made.append(Life(parent, given, port, folder / f"log-{place}"))
            made[-1].start()
        yield made
    finally:
        for life in made:
            life.end()
        parent.stdin.close()
        parent.wait(30)
        parent.stdout.close()


@dataclass
class Call:
    """One paid call, from its payment to its answer."""

    mark: str
    """Its query, by which the upstream counts it."""
    paid_by: str
    """What its transfer is known by: the authorisation's nonce, or the transaction."""
    served: bool = False
    refused: str = ""
    answers: Counter[int] = field(default_factory=Counter[int])


@dataclass
class Table:
    """What became of the money."""

    store: str
    kills: int
    calls: list[Call]
    transfers: Counter[str]
    """To the payee, by what their calls know them by."""
    on_chain: int
    ledger: int
    revenue: int
    runs: Counter[str]
    books: Books

    @property
    def free(self) -> int:
        return sum(call.served and not self.transfers[call.paid_by] for call in self.calls)

    @property
    def lost(self) -> int:
        """Transfers that bought nothing."""
        served = {call.paid_by for call in self.calls if call.served}
        return sum(count for key, count in self.transfers.items() if key not in served)

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.transfers.values() if count > 1)

    def row(self) -> str:
        served = [call for call in self.calls if call.served]
        runs = Counter(self.runs[call.mark] for call in served)
        return (
            f"| {self.store} | {self.kills} | {len(self.calls)} | {len(served)}"
            f" | {sum(self.transfers.values())} | {dollars(self.on_chain)}"
            f" | {dollars(self.ledger)} | {dollars(self.revenue)} | {self.free} | {self.lost}"
            f" | {self.doubled} | {', '.join(f'{n}: {runs[n]}' for n in sorted(runs))}"
            f" | {' | '.join(self.books.cells())} |"
        )


HEAD = (
    "| store | kills | calls | 200 | transfers | money on chain | ledger | analytics revenue"
    " | free | lost | doubled | upstream runs per served call"
    f" | {' | '.join(COLUMNS)} |\n|{'---|' * (12 + len(COLUMNS))}"
)


def dollars(base_units: int) -> str:
    return f"{base_units // 10**6}.{base_units % 10**6:06}"


@dataclass
class Load:
    """Payers that each buy one thing after another, and come again until they have it."""

    lives: Sequence[Life]
    random: random.Random
    calls: list[Call] = field(default_factory=list[Call])
    is_over: threading.Event = field(default_factory=threading.Event)
    problems: list[str] = field(default_factory=list[str])
    known_s: float = 120.0
    """How long one call may take to be known."""

    def known(self, call: Call, send: Callable[[str], httpx2.Response]) -> None:
        """Send the same payment until it is served or refused."""
        deadline = time.monotonic() + self.known_s
        while time.monotonic() < deadline:
            life = self.random.choice(self.lives)
            try:
                answer = send(life.address)
            except httpx2.HTTPError:
                call.answers[0] += 1
                time.sleep(0.05)
                continue
            call.answers[answer.status_code] += 1
            if answer.status_code == 200:
                call.served = True
                call.paid_by = call.paid_by or _reference(answer)
                return
            if answer.status_code == 402:
                call.refused = str(answer.json().get("reason"))
                return
            if answer.status_code not in {502, 503}:
                self.problems.append(f"{answer.status_code} {answer.text[:300]}")
                return
            time.sleep(0.2)
        self.problems.append(f"never known: {call.answers}")


def _reference(answer: httpx2.Response) -> str:
    """The transaction that a `Payment-Receipt` names."""
    told = answer.headers["payment-receipt"]
    return str(json.loads(base64.urlsafe_b64decode(told + "=="))["reference"]).lower()


def harass(lives: Sequence[Life], kills: int, random_: random.Random, life_s: float) -> None:
    """Kill one after another at a random moment of its life; each starts again at once."""
    for _ in range(kills):
        time.sleep(random_.uniform(0.05, life_s) / len(lives))
        victim = random_.choice(list(lives))
        victim.kill()
        victim.start()


def x402_kills(store: str, kills: int, payers: int, folder: Path, *, seed: int = 0) -> Table:
    """Random kills under x402 load: `sqlite` one process, `postgresql` two of them."""
    with ExitStack() as stack:
        chain = stack.enter_context(dollars_on(NETWORK))
        up = stack.enter_context(upstream())
        shared = {
            **SETTINGS,
            **_served(folder),
            "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [chain.url]}),
            "ASSAY_X402_PRIVATE_KEY": ENGINE.key,
            "ASSAY_PAYOUT_ADDRESS": PLATFORM.address,
            "ASSAY_GAS_FREE_SETTLEMENTS": "1000000",
            "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": "1000000",
            "ASSAY_GAS_CAP": f"{NETWORK}=0.01",
            "ASSAY_X402_CLOCK_S": "86400",
        }
        count, database, more = _stored(store, folder)
        running = stack.enter_context(
            lives(folder, [shared | more] * count, [_port() for _ in range(count)])
        )
        http = stack.enter_context(_client(running[0]))
        shop = _opened(running[0], http, chain, up)
        up.before = _slowly
        kinds = [("echo", "after"), ("echo", "after"), ("slow", "after"), ("slow", "after")]
        paths = _sold(shop, [*kinds, ("echo", "before")])
        accounts = [_fresh_account() for _ in range(payers)]
        for account in accounts:
            chain.mint(account.address, 10**9)
        load = Load(running, random.Random(seed))
        threads = [
            threading.Thread(target=_buy_forever, args=(shop, account, paths, load))
            for account in accounts
        ]
        _run(load, threads, lambda: harass(running, kills, random.Random(seed + 1), LIFE_S))
        assert not load.problems, load.problems[:5]
        _wait_until_finished(store, database)
        return Table(
            store=f"{store}, {_processes(count)}",
            kills=sum(life.kills for life in running),
            calls=load.calls,
            transfers=_transfers(chain),
            on_chain=chain.balance(SELLER.address),
            ledger=_ledger(store, database),
            revenue=_revenue(shop),
            runs=_runs(up),
            books=books(shop, lambda: _states(store, database)),
        )


def mpp_kills(tempo: Tempo, store: str, kills: int, folder: Path, *, seed: int = 0) -> Table:
    """Random kills under MPP load; one payer, for its nonces are in one order.

    Processes are as in `x402_kills`, and a payment goes to either of them. What is paid is the
    seller's and the platform's, in one transaction.
    """
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        shared = {
            **SETTINGS,
            **_served(folder),
            "ASSAY_PAYMENT_RPC": json.dumps({tempo.network: [tempo.url]}),
            # A local chain's transactions may be valid for 30 seconds at most.
            "ASSAY_MPP_CHALLENGE_S": "25",
            "ASSAY_PAYOUT_ADDRESS": PLATFORM.address,
            "ASSAY_FEE_RATE": FEE_RATE,
        }
        count, database, more = _stored(store, folder)
        running = stack.enter_context(
            lives(folder, [shared | more] * count, [_port() for _ in range(count)])
        )
        http = stack.enter_context(_client(running[0]))
        shop = _opened(running[0], http, None, up)
        fields = {
            "paymentProtocol": "mpp",
            "paymentNetwork": tempo.network,
            "payoutAddress": TEMPO_SELLER,
        }
        paths = [
            httpx2.URL(shop.wrap(f"/echo/mpp-{settle}", settle=settle, timeoutMs=2000, **fields))
            for settle in ("after", "before")
        ]
        payees = (TEMPO_SELLER, PLATFORM.address)
        had = [tempo.balance(payee) for payee in payees]
        since = str(tempo.request("eth_blockNumber"))
        load = Load(running, random.Random(seed))
        args = (tempo, [one.path for one in paths], load, http)
        thread = threading.Thread(target=_pay_mpp_forever, args=args)
        _run(load, [thread], lambda: harass(running, kills, random.Random(seed + 1), MPP_LIFE_S))
        assert not load.problems, load.problems[:5]
        _wait_until_finished(store, database)
        sold, fees = (tempo.balance(payee) - was for payee, was in zip(payees, had, strict=True))
        assert fees == (sold + fees) * Decimal(FEE_RATE), (sold, fees)
        return Table(
            store=f"{store}, {_processes(count)}, MPP",
            kills=sum(life.kills for life in running),
            calls=load.calls,
            transfers=_mpp_transfers(tempo, since),
            on_chain=sold + fees,
            ledger=_ledger(store, database),
            revenue=_revenue(shop),
            runs=_runs(up),
            books=books(shop, lambda: _states(store, database)),
        )


def _stored(store: str, folder: Path) -> tuple[int, str, dict[str, str]]:
    """How many processes there are over a fresh database, where it is, and what they share."""
    if store == "sqlite":
        return 1, str(folder / "assay.db"), {}
    database = migrated_postgresql()
    address = {"ASSAY_DATABASE_URL": database, "ASSAY_PUBLIC_URL": "http://assay.example"}
    return 2, database, {**SECRETS, **address}


def _processes(count: int) -> str:
    return f"{count} process{'es' if count > 1 else ''}"


def _slowly(path: str) -> None:
    """Some of what is sold takes its time."""
    if path.startswith("/slow"):
        time.sleep(SLOW_S)


def _fresh_account() -> LocalAccount:
    key = "0x" + secrets.token_hex(32)
    return LocalAccount(key, Account.from_key(key).address.lower())


def _run(load: Load, threads: Sequence[threading.Thread], kill: Callable[[], None]) -> None:
    """Load while it is killed, and until every call that was begun is known."""
    for thread in threads:
        thread.start()
    try:
        kill()
        deadline = time.monotonic() + load.known_s  # a slow machine serves nobody between two kills
        while sum(call.served for call in load.calls) < SERVED_MIN and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        load.is_over.set()
        for thread in threads:
            thread.join()


def _served(folder: Path) -> dict[str, str]:
    return {
        "ASSAY_DATA_DIR": str(folder),
        "ASSAY_CHAINS": json.dumps(NO_CHAIN),
        "ASSAY_DEFAULT_CHAIN": "local",
        "ASSAY_ALLOW_PRIVATE_UPSTREAMS": "1",
        "ASSAY_ANONYMOUS_PER_MINUTE": "100000",
        "ASSAY_ACCOUNTS_PER_ADDRESS": "10000",
        "ASSAY_LOG_FORMAT": "json",
        "ASSAY_SELF_REGISTRY": "",
    }


@contextmanager
def _client(life: Life) -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=30, trust_env=False, base_url=life.address) as http:
        yield http


def _opened(life: Life, http: httpx2.Client, chain: Dollars | None, up: Upstream) -> Shop:
    server: Any = life  # a shop needs its address
    made = Shop(server, http, chain, up)  # type: ignore[arg-type] - on Tempo there is no such chain
    made.sign_up()
    return made


def _sold(shop: Shop, kinds: Sequence[tuple[str, str]]) -> list[str]:
    """Paths below our address of wrappers that answer at once or slowly, paid after or before."""
    urls = [
        shop.wrap(f"/{kind}/{place}-{settle}", settle=settle, timeoutMs=5000, rateLimit=100_000)
        for place, (kind, settle) in enumerate(kinds)
    ]
    return [httpx2.URL(url).path for url in urls]


def _buy_forever(shop: Shop, account: LocalAccount, paths: Sequence[str], load: Load) -> None:
    """Buy one thing after another, each with a payment of its own."""
    number = 0
    with httpx2.Client(timeout=30, trust_env=False) as http:
        while not load.is_over.is_set():
            number += 1
            path, mark = load.random.choice(list(paths)), f"{account.address[-6:]}-{number}"
            try:
                url = load.random.choice(list(load.lives)).address + path
                payment = Shop(shop.server, http, shop.chain, shop.upstream).payment(
                    f"{url}?call={mark}", account
                )
            except (httpx2.HTTPError, AssertionError, KeyError):
                time.sleep(0.05)  # it was killed before it could say what it costs
                continue
            nonce = payment["payload"]["authorization"]["nonce"]
            call = Call(mark, nonce)
            load.calls.append(call)
            header = {"payment-signature": encoded(payment)}

            def send(address: str, header: Any = header, path: str = path, mark: str = mark) -> Any:
                return http.get(f"{address}{path}?call={mark}", headers=header)

            load.known(call, send)


def _pay_mpp_forever(tempo: Tempo, paths: Sequence[str], load: Load, http: httpx2.Client) -> None:
    number = 0
    while not load.is_over.is_set():
        number += 1
        mark = f"mpp-{number}"
        target = f"{load.random.choice(list(paths))}?call={mark}"
        try:
            header = asyncio.run(
                signed(load.random.choice(list(load.lives)).address + target, tempo)
            )
        except Exception:  # noqa: BLE001 - a stock client's own errors, while the server is gone
            time.sleep(0.05)
            continue
        call = Call(mark, "")
        load.calls.append(call)

        def send(address: str, target: str = target, header: str = header) -> httpx2.Response:
            return http.get(address + target, headers={"authorization": header})

        load.known(call, send)


def _rows(store: str, database: str, statement: str) -> list[tuple[Any, ...]]:
    if store == "sqlite":
        with contextlib.closing(sqlite3.connect(database)) as opened:
            return list(opened.execute(statement))
    return asyncio.run(_postgres_rows(database, statement))


async def _postgres_rows(database: str, statement: str) -> list[tuple[Any, ...]]:
    import asyncpg  # type: ignore[import-untyped]  # noqa: PLC0415

    connection = await asyncpg.connect(database)
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


def _wait_until_finished(store: str, database: str, seconds: float = 60) -> None:
    """Until the reconciler has left nothing open."""
    statement = "SELECT count(*) FROM payments WHERE state IN ('settling', 'pending')"
    deadline = time.monotonic() + seconds
    while _rows(store, database, statement)[0][0] and time.monotonic() < deadline:
        time.sleep(0.05)


def _ledger(store: str, database: str) -> int:
    statement = "SELECT sum(amount) FROM payments WHERE state IN ('settled', 'delivered')"
    return int(_rows(store, database, statement)[0][0] or 0)


def _states(store: str, database: str) -> dict[str, tuple[str, int]]:
    """State and amount of every payment, by its id."""
    rows = _rows(store, database, "SELECT id, state, amount FROM payments")
    return {str(one): (str(state), int(amount)) for one, state, amount in rows}


def _mpp_transfers(tempo: Tempo, since: str) -> Counter[str]:
    """Transfers to the seller after that block, by their transactions."""
    moved = "0x" + topic("Transfer(address,address,uint256)").hex()
    payee = "0x" + TEMPO_SELLER[2:].rjust(64, "0")
    asked = {
        "address": tempo.dollar,
        "fromBlock": hex(int(since, 16) + 1),
        "toBlock": "latest",
        "topics": [moved, None, payee],
    }
    return Counter(
        str(log["transactionHash"]).lower() for log in tempo.request("eth_getLogs", asked)
    )


def _transfers(chain: Dollars) -> Counter[str]:
    """Transfers to the seller, by the nonce that was used just before in the same transaction."""
    asked = {"address": chain.asset, "fromBlock": "0x0", "toBlock": "latest"}
    logs = chain.wallet.request("eth_getLogs", asked)
    used = "0x" + topic("AuthorizationUsed(address,bytes32)").hex()
    found: Counter[str] = Counter()
    for log in logs:
        if log["topics"][0] == used:
            found[log["topics"][2]] += 1
    return found


def _revenue(shop: Shop) -> int:
    """What analytics say was earned, in base units."""
    answer = shop.http.get("/operator/analytics/revenue?days=2", headers=dict(shop.token))
    assert answer.status_code == 200, answer.text
    return sum(round(float(day["revenue"]) * 10**6) for day in answer.json())


def _runs(up: Upstream) -> Counter[str]:
    """How often the upstream was asked for each call."""
    found: Counter[str] = Counter()
    for seen in up.seen:
        query = seen.path.partition("?")[2]
        found[query.removeprefix("call=")] += 1
    return found
