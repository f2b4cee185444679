"""The demo's world: a chain, registries on it, agents that run, and what was said of them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from eth_account import Account

from assay_demo.agents.files import data_uri, registration
from assay_demo.chain.accounts import ACCOUNTS, FIRST_REVIEWER
from assay_demo.chain.dollars import BASE_SEPOLIA, BASE_SEPOLIA_USDC, mint
from assay_demo.chain.registries import (
    Registries,
    Wallet,
    deploy,
    give_feedback,
    register,
)

CHAIN_ID = 31337
START_S = 30.0
END_S = 5.0
_SELLER = 19
_DOLLARS = 100 * 10**6

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WorldAgent:
    """A registered agent; the holder of `owner_key` speaks for it."""

    agent_id: str
    name: str
    owner_key: str
    url: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """A sample agent and what reviewers say of it. No module: its service is down."""

    name: str
    description: str
    module: str | None
    ratings: tuple[int, ...]
    serves_its_file: bool = False


_PLANS = (
    _Plan(
        "Steady",
        "Tells the weather of every town of an invented world. Well-behaved.",
        "assay_demo.agents.steady",
        tuple(islice(cycle((96, 99, 94, 100, 97, 95)), 14)),
        serves_its_file=True,
    ),
    _Plan(
        "Flaky",
        "Tells the weather too, when it is up.",
        "assay_demo.agents.flaky",
        tuple(islice(cycle((40, 20, 55, 10, 35, 30, 25)), 14)),
    ),
    _Plan(
        "Hostile",
        "The best prices, always. Trust me.",
        "assay_demo.agents.hostile",
        (100, 100, 100, 100),
    ),
    _Plan("Silent", "Registered once, and gone since.", None, (80, 75)),
)


@dataclass(frozen=True, slots=True)
class World:
    """A running world; use `World.start`."""

    rpc_url: str
    registries: Registries
    agents: Sequence[WorldAgent]
    dollar_url: str
    """Where a second chain answers, with a test dollar at the address of Base Sepolia's."""
    upstream_url: str
    """An API to be sold."""
    settler_key: str
    """A funded key that settles payments."""
    seller: str
    """Who is paid."""

    @property
    def network_override(self) -> Mapping[str, object]:
        """The chain as Assay's configuration takes it."""
        return {
            "name": "Local chain",
            "chain_id": CHAIN_ID,
            "testnet": True,
            "identity_registry": self.registries.identity,
            "reputation_registry": self.registries.reputation,
            "rpc_urls": [self.rpc_url],
            "multicall3": False,
            "source": "assay_demo",
        }

    @staticmethod
    @asynccontextmanager
    async def start(say: Say = lambda _text: None) -> AsyncGenerator["World"]:
        """Start everything; end everything that was started, whatever happens.

        Raises `RuntimeError` when a part does not come up.
        """
        async with AsyncExitStack() as stack:
            say("starting a local EVM chain")
            rpc_url = await stack.enter_async_context(_process("assay_demo.chain.node"))
            wallet = stack.enter_context(Wallet(rpc_url))
            say("deploying the ERC-8004 registries")
            registries = await asyncio.to_thread(deploy, wallet, ACCOUNTS[0].key)
            say("starting the sample agents, and an API to sell")
            dollar_url = await stack.enter_async_context(
                _process(
                    "assay_demo.chain.node",
                    *("--chain-id", str(BASE_SEPOLIA), "--dollar", BASE_SEPOLIA_USDC),
                )
            )
            upstream_url = await stack.enter_async_context(_process("assay_demo.upstream"))
            urls = await _start_agents(stack, registries)
            say("registering the agents, collecting feedback")
            agents = await asyncio.to_thread(_populate, wallet, registries, urls)
            await asyncio.to_thread(_fund, dollar_url, agents)
            yield World(
                rpc_url,
                registries,
                agents,
                dollar_url=dollar_url,
                upstream_url=upstream_url,
                settler_key=ACCOUNTS[0].key,
                seller=ACCOUNTS[_SELLER].address,
            )


async def _start_agents(stack: AsyncExitStack, registries: Registries) -> Sequence[str]:
    """Where each agent answers, in the order of the plans; all start at once."""

    async def start(number: int, plan: _Plan) -> str:
        if plan.module is None:
            return "http://127.0.0.1:9"
        options = ("--agent-id", str(number), "--agent-registry", _registry(registries))
        return await stack.enter_async_context(_process(plan.module, *options))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(start(n, plan)) for n, plan in enumerate(_PLANS)]
    return [task.result() for task in tasks]


def _populate(wallet: Wallet, registries: Registries, urls: Sequence[str]) -> Sequence[WorldAgent]:
    agents: list[WorldAgent] = []
    for number, (plan, url) in enumerate(zip(_PLANS, urls, strict=True)):
        owner = ACCOUNTS[1 + number]
        file = registration(plan.name, plan.description, url, number, _registry(registries))
        own = f"{url}/.well-known/agent-registration.json"
        uri = own if plan.serves_its_file else data_uri(file)
        agent_id = register(wallet, registries, owner.key, uri)
        for client, rating in zip(ACCOUNTS[FIRST_REVIEWER:], plan.ratings, strict=False):
            give_feedback(wallet, registries, client.key, agent_id, rating)
        agents.append(WorldAgent(agent_id, plan.name, owner.key, url))
    return agents


def _fund(dollar_url: str, agents: Sequence[WorldAgent]) -> None:
    """A hundred test dollars for every agent's owner."""
    with Wallet(dollar_url) as wallet:
        for agent in agents:
            owner = Account.from_key(agent.owner_key).address
            mint(wallet, ACCOUNTS[0].key, BASE_SEPOLIA_USDC, owner, _DOLLARS)


def _registry(registries: Registries) -> str:
    return f"eip155:{CHAIN_ID}:{registries.identity}"


@asynccontextmanager
async def _process(module: str, *options: str) -> AsyncGenerator[str]:
    """`python -m module` in a process group of its own; gives the `url` of its first line."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path, "LIFELINE_ON_STDIN": "1"},  # noqa: TID251 - handed on, not read
        start_new_session=True,  # Ctrl-C reaches this process, which ends the others in order
    )
    try:
        yield await _url_of(process, module)
    finally:
        await _end(process)


async def _url_of(process: asyncio.subprocess.Process, module: str) -> str:
    if process.stdout is None:
        raise RuntimeError(f"{module} has no output")
    try:
        async with asyncio.timeout(START_S):
            line = await process.stdout.readline()
        return str(json.loads(line)["url"])
    except (TimeoutError, ValueError, KeyError):
        raise RuntimeError(f"{module} did not start") from None


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        os.killpg(process.pid, number)
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            continue
