"""`assay doctor`: reports what works and what does not, and how to fix it."""

import asyncio
import os
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape

from assay.app import App, assemble, networks_from
from assay.app.payments import payment_rows
from assay.chains.model import ChainUnavailable, Network
from assay.cli import unsafe_connections
from assay.cli.command import read_settings
from assay.cli.unsafe_addresses import shown
from assay.cli.unsafe_connections import unsafe_connection_limits
from assay.cli.unsafe_settings import findings
from assay.common.errors import ServiceError
from assay.common.json import is_object
from assay.common.numbers import DECIMALS
from assay.payments.settling_watch import FacilitatorStatus, KeyStatus
from assay.probing.paid_calls import CALLS_MIN, GAS, SHARE
from assay.reputation.write_back import LAMPORTS_MIN
from assay.settings import Settings, settling_key_file

CHAIN_S = 8.0
"""How long one chain may take to answer."""


_SEVERAL = 2


@dataclass(frozen=True, slots=True)
class Check:
    """One checked thing; `fix` says what to do if it does not work."""

    name: str
    works: bool
    says: str
    fix: str = ""


def doctor(
    *,
    strict: Annotated[
        bool, Parameter(negative=(), help="Status 1 when a setting is unsafe, too.")
    ] = False,
) -> int:
    """Check everything; return 0 if all that is needed works and, if `strict`, is safe."""
    settings = read_settings({})
    unsafe = [
        *findings(settings),
        *unsafe_connection_limits(settings),
    ]  # first: opening may change modes
    checks = asyncio.run(_examine(settings.model_copy(update={"log_level": "error"})))
    console = Console(highlight=False, soft_wrap=True)
    for check in checks:
        mark = "[green]works[/]" if check.works else "[red]fails[/]"
        console.print(f"{mark}  [bold]{escape(check.name)}[/]  {escape(check.says)}")
        if not check.works:
            console.print(f"       fix: {escape(check.fix)}")
    mark = "[red]unsafe[/]" if strict else "[yellow]warns[/]"
    for finding in unsafe:
        console.print(f"{mark}  [bold]{finding.name}[/]  {escape(finding.what)}")
        console.print(f"        why: {escape(finding.why)}")
        console.print(f"        do: {escape(finding.do)}")
    works = all(check.works for check in checks)
    return 0 if works and not (strict and unsafe) else 1


def _files(settings: Settings) -> Check:
    """Check the limit of open files; if it is too low, `serve` lowers the caps of connections."""
    name, files = "open files", unsafe_connections.reachable()
    fitting = unsafe_connections.fitting(settings, files)
    if fitting is settings:
        return Check(name, works=True, says="room for every connection of the settings")
    needs = unsafe_connections.needed(settings)
    says = f"{files} are room for {fitting.connections_max} connections, not"
    says += f" {settings.connections_max}: {unsafe_connections.ADVICE} ({needs})"
    return Check(name, works=True, says=says)


async def _examine(settings: Settings) -> Sequence[Check]:
    checks = [_data_dir(settings.data_dir), _files(settings)]
    try:
        networks_from(settings)
        async with assemble(settings, serving=False) as app:
            checks += [await _database(app), *await _state(app), _exposure(settings)]
            checks += await _upstreams(app)
            checks += [_payments(settings), _payment_endpoints(settings), _visits(settings)]
            checks += await _settling(app)
            checks += [Check("paid calls", *said) for said in await paid_calls_said(app)]
            checks += await _chains(app)
            is_default = app.networks.default.family == "solana"
            if is_default or any(n.startswith("solana_") for n in settings.model_fields_set):
                checks += await _solana(app)
    except (ServiceError, ValueError, RuntimeError, OSError) as error:
        checks.append(
            Check("start", works=False, says=str(error), fix="correct it and run doctor again")
        )
    return checks


def _visits(settings: Settings) -> Check:
    """Report how scheduled visits go out. Without proxies they count for less."""
    ways = len(settings.visit_proxies)
    if ways:
        return Check("visits", works=True, says=f"unannounced ones leave by {ways} proxies")
    says = "without ASSAY_VISIT_PROXIES they are unlabelled, and no agent gets beyond rung 1"
    return Check("visits", works=True, says=says)


def _data_dir(folder: Path) -> Check:
    name = "data directory"
    nearest = next(p for p in (folder, *folder.parents) if p.exists())
    if os.access(nearest, os.W_OK):
        return Check(name, works=True, says=str(folder))
    fix = f"make {nearest} writable, or set ASSAY_DATA_DIR"
    return Check(name, works=False, says=f"cannot write to {folder}", fix=fix)


async def _database(app: App) -> Check:
    name = f"database ({app.database.kind})"
    try:
        await app.database.ping()
    except ServiceError as error:
        fix = "start it, or correct ASSAY_DATABASE_URL"
        return Check(name, works=False, says=error.message, fix=fix)
    return Check(name, works=True, says="answers, and its schema is up to date")


async def _state(app: App) -> Sequence[Check]:
    """Check the server of shared limits, if one is set."""
    if app.quota_lease is None:
        return []
    name = "shared state (valkey)"
    try:
        await app.quota_lease.check()
    except ServiceError as error:
        says = f"{error.message} {error.detail or ''}".strip()
        fix = "start it, or correct ASSAY_STATE_URL"
        return [Check(name, works=False, says=says, fix=fix)]
    return [Check(name, works=True, says="answers, and lends")]


def _exposure(settings: Settings) -> Check:
    name = "egress guard"
    if not settings.allow_private_upstreams:
        return Check(name, works=True, says="private addresses are refused")
    fix = "unset ASSAY_ALLOW_PRIVATE_UPSTREAMS on anything but a developer's machine"
    local = settings.host in {"127.0.0.1", "::1", "localhost"}
    return Check(name, works=local, says="private addresses are allowed", fix=fix)


async def _upstreams(app: App) -> Sequence[Check]:
    """Check which private upstreams are opened, and whether their accounts exist."""
    name, settings = "own upstreams", app.settings
    opened, operators = settings.upstream_allow, settings.upstream_allow_operators
    if not opened and not operators:
        return []
    says = f"{', '.join(opened) or 'nothing'} for wrappers of {len(operators)} accounts"
    if not opened or not operators:
        fix = "set ASSAY_UPSTREAM_ALLOW and ASSAY_UPSTREAM_ALLOW_OPERATORS, or neither"
        return [Check(name, works=False, says=says, fix=fix)]
    known = {operator.id for operator in await app.operators.list_for_admin()}
    unknown = ", ".join(one for one in operators if one not in known)
    fix = "name ids of `assay accounts list --json` in ASSAY_UPSTREAM_ALLOW_OPERATORS"
    says += f", of which {unknown} does not exist" if unknown else ""
    return [Check(name, works=not unknown, says=says, fix=fix)]


def _payments(settings: Settings) -> Check:
    """Report who settles x402 payments; the facilitator does if both are set."""
    name, has_key = "x402 payments", settings.x402_private_key is not None
    is_set = "x402_private_key" in settings.model_fields_set
    if facilitators := settings.x402_facilitators:
        says = f"settled by the facilitator {', else '.join(map(shown, facilitators))}"
        unused = ", and ASSAY_X402_PRIVATE_KEY is not used: unset it" * is_set
        return Check(name, works=True, says=says + unused)
    key = "ASSAY_X402_PRIVATE_KEY" if is_set else str(settling_key_file(settings.data_dir))
    says = f"settled with {key}" if has_key else "not settled: nothing is set"
    return Check(name, works=True, says=says)


async def _settling(app: App) -> Sequence[Check]:
    """If wrappers sell: check the settling key's balance, the facilitator and the nodes."""
    sold = {one.network for one in await app.settling.sold() if one.protocol == "x402"}
    facilitators = await app.settling.facilitators() if sold else ()
    keys = [] if facilitators else [_key(one) for one in await app.settling.keys()]
    nodes = [_node(*one) for one in (await app.settling.nodes()).items()]
    return [*(_facilitator(one, sold) for one in facilitators), *keys, *nodes]


def _node(network: str, answers: bool) -> Check:  # noqa: FBT001 - an item of a mapping
    says = "answers" if answers else "none answers: nobody can settle payments there"
    fix = "set one that answers in ASSAY_PAYMENT_RPC"
    return Check(f"payment node of {network}", works=answers, says=says, fix=fix)


def _facilitator(status: FacilitatorStatus, sold: set[str]) -> Check:
    """Report one facilitator: whether it answers us, and lists what wrappers sell on."""
    fix = "start it, correct ASSAY_X402_FACILITATOR_CREDENTIALS, or set another one"
    says, lacking = status.problem or "answers", list[str]()
    if status.networks is not None:
        lacking = sorted(sold - status.networks)
        says += f", and lists {', '.join(sorted(status.networks)) or 'no network of ours'}"
        says += f"; wrappers sell by exact on {', '.join(lacking)} as well" if lacking else ""
        fix = "set one in ASSAY_X402_FACILITATOR_URL that lists the networks of your wrappers"
    name = f"x402 facilitator {shown(status.url)}"
    return Check(name, works=not status.problem and not lacking, says=says, fix=fix)


def _key(status: KeyStatus) -> Check:
    name = f"settling key on {status.network}"
    says = status.address
    if status.state is not None:
        balance = Decimal(status.state.balance).scaleb(-18)
        says += f" holds {balance:f} coins, enough for {status.payable} settlements"
    if status.problem:
        says += f": {status.problem}"
    fix = f"send {status.address} coins of {status.network} for gas"
    if status.problem:
        fix = "set a node that answers in ASSAY_PAYMENT_RPC, or a higher ASSAY_GAS_CAP"
    return Check(name, works=status.payable > 0, says=says, fix=fix)


def _payment_endpoints(settings: Settings) -> Check:
    """Report networks with one endpoint: no other endpoint confirms its answers."""
    name, rows = "payment endpoints", payment_rows(settings).values()
    alone = [row.id for row in rows if len(set(row.rpc_urls)) < _SEVERAL]
    if not alone:
        return Check(name, works=True, says="two or more for each network")
    says = f"one only for {', '.join(alone)}: its word on a payment is final"
    return Check(name, works=True, says=f"{says}; ASSAY_PAYMENT_RPC takes a second")


async def _chains(app: App) -> Sequence[Check]:
    """Check the default chain and every configured chain; the table has too many to check.

    Solana has a check of its own (`_solana`).
    """
    slugs = sorted({app.networks.default.slug, *app.settings.chains})
    evm = [n for n in map(app.networks.by_slug, slugs) if n.family == "evm"]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_chain(app, network)) for network in evm]
    return [task.result() for task in tasks]


async def _solana(app: App) -> Sequence[Check]:
    """Check what is set for Solana: the cluster's node, the indexer, the write-back wallet."""
    network = app.networks.by_slug("solana")
    checks = [
        await _asked(
            f"solana node ({network.cluster})",
            _registry_there(app, network),
            f"set ASSAY_SOLANA_RPC_URL to a node of {network.cluster}",
        )
    ]
    if network.index_urls:
        fix = "set ASSAY_SOLANA_INDEXER_URL to one that answers, or to nothing"
        checks.append(await _asked("solana indexer", app.index.check(network), fix))
    if app.write_back is not None:
        fix = f"send the wallet {app.write_back.address} at least 0.001 SOL"
        checks.append(await _asked("solana wallet", _fees_paid(app, network), fix))
    return checks


async def _asked(name: str, question: Awaitable[str], fix: str) -> Check:
    try:
        async with asyncio.timeout(CHAIN_S):
            return Check(name, works=True, says=await question)
    except ServiceError as error:
        says = f"{error.message} {error.detail or ''}".strip()
        return Check(name, works=False, says=says, fix=fix)
    except TimeoutError:
        return Check(name, works=False, says=f"no answer within {CHAIN_S:g} s", fix=fix)


async def _registry_there(app: App, network: Network) -> str:
    options = {"encoding": "base64", "dataSlice": {"offset": 0, "length": 0}}
    program = network.identity_registry
    found = await app.rpc.request(network, "getAccountInfo", [program, options])
    account = found.get("value") if is_object(found) else None
    if not is_object(account) or account.get("executable") is not True:
        raise ChainUnavailable(f"There is no program at {program}.")
    return "right cluster, the registry is there"


async def _fees_paid(app: App, network: Network) -> str:
    write_back = app.write_back
    lamports = await write_back.balance(network) if write_back is not None else 0
    if lamports < LAMPORTS_MIN:
        raise ChainUnavailable(f"The writing wallet holds {lamports} lamports.")
    return f"holds {lamports} lamports"


async def _chain(app: App, network: Network) -> Check:
    name = f"chain {network.slug}"
    fix = (
        f"reach one of {', '.join(network.rpc_urls)} from here, or set other rpc_urls for "
        f"{network.slug} in ASSAY_CHAINS"
    )
    try:
        async with asyncio.timeout(CHAIN_S):
            await app.subjects.reader(network).fetch_feedback(network, "0")
    except ChainUnavailable as error:
        return Check(name, works=False, says=error.message, fix=fix)
    except TimeoutError:
        return Check(name, works=False, says=f"no answer within {CHAIN_S:g} s", fix=fix)
    return Check(name, works=True, says=f"chain id {network.chain_id}, registries answer")


async def paid_calls_said(app: App) -> Sequence[tuple[bool, str, str]]:
    """Return whether paid calls can be made, what was spent and held, and what to do.

    Empty if they are not configured.
    """
    if app.paid_calls is None:
        return []
    try:
        found = await app.paid_calls.status()
    except ServiceError as error:
        return [(False, error.message, "set a node that answers in ASSAY_PAYMENT_RPC")]
    seen, most = found.spending, found.day_budget // SHARE - GAS
    balance = ", ".join(
        f"{_usd(units)} USD on {n}" for n, units in found.balance_by_network.items()
    )
    says = f"{_usd(seen.day)} of {_usd(found.day_budget)} USD claimed within a day, gas included;"
    says += f" in 30 days {seen.calls} claims, {seen.filled} wallets filled, {seen.proven} sellers"
    says += f" proven, {_usd(seen.taken)} USD taken; {found.wallet} holds {balance}"
    if most < CALLS_MIN:
        return [(False, says, "set ASSAY_PAID_CALLS_USD_PER_DAY to 0.20 or more")]
    fix = f"send {found.wallet} stablecoin, and coins for gas: a few days' worth"
    return [(any(units >= most for units in found.balance_by_network.values()), says, fix)]


def _usd(units: int) -> str:
    return f"{Decimal(units).scaleb(-DECIMALS).normalize():f}"
