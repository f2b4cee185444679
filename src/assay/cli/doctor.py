"""`assay doctor`: what works and what does not, each with its mend."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from assay.chains.model import ChainUnavailable, Network
from assay.cli.run import read_settings
from assay.kit.errors import ServiceError
from assay.settings import Settings
from assay.wiring import App, assemble, networks_from

CHAIN_S = 8.0
"""How long one chain may take to answer."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; `mend` says what to do where it does not work."""

    name: str
    works: bool
    says: str
    mend: str = ""


def doctor() -> int:
    """Look at everything; status 0 when all that is needed works."""
    settings = read_settings({"log_level": "error"})
    checks = asyncio.run(_examine(settings))
    console = Console(highlight=False, soft_wrap=True)
    for check in checks:
        mark = "[green]works[/]" if check.works else "[red]fails[/]"
        console.print(f"{mark}  [bold]{check.name}[/]  {check.says}")
        if not check.works:
            console.print(f"       mend: {check.mend}")
    return 0 if all(check.works for check in checks) else 1


async def _examine(settings: Settings) -> Sequence[Check]:
    checks = [_data_dir(settings.data_dir)]
    try:
        networks_from(settings)
        async with assemble(settings) as app:
            checks += [await _database(app), _exposure(settings)]
            checks += await _chains(app)
    except (ServiceError, ValueError, RuntimeError, OSError) as error:
        checks.append(
            Check("start", works=False, says=str(error), mend="set it right and run doctor again")
        )
    return checks


def _data_dir(folder: Path) -> Check:
    name = "data directory"
    nearest = next(p for p in (folder, *folder.parents) if p.exists())
    if os.access(nearest, os.W_OK):
        return Check(name, works=True, says=str(folder))
    mend = f"make {nearest} writable, or set ASSAY_DATA_DIR"
    return Check(name, works=False, says=f"cannot write to {folder}", mend=mend)


async def _database(app: App) -> Check:
    name = f"database ({app.database.kind})"
    try:
        await app.database.ping()
    except ServiceError as error:
        mend = "start it, or mend ASSAY_DATABASE_URL"
        return Check(name, works=False, says=error.message, mend=mend)
    return Check(name, works=True, says="answers, and its schema is up to date")


def _exposure(settings: Settings) -> Check:
    name = "egress guard"
    if not settings.allow_private_upstreams:
        return Check(name, works=True, says="private addresses are refused")
    mend = "unset ASSAY_ALLOW_PRIVATE_UPSTREAMS on anything but a developer's machine"
    local = settings.host in {"127.0.0.1", "::1", "localhost"}
    return Check(name, works=local, says="private addresses are allowed", mend=mend)


async def _chains(app: App) -> Sequence[Check]:
    """The default chain and every chain the operator configured; the table has too many to ask."""
    slugs = {app.networks.default.slug, *app.settings.chains}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_chain(app, app.networks.by_slug(slug))) for slug in sorted(slugs)
        ]
    return [task.result() for task in tasks]


async def _chain(app: App, network: Network) -> Check:
    name = f"chain {network.slug}"
    mend = (
        f"reach one of {', '.join(network.rpc_urls)} from here, or set other rpc_urls for "
        f"{network.slug} in ASSAY_CHAINS"
    )
    try:
        async with asyncio.timeout(CHAIN_S):
            await app.subjects.reader(network).fetch_feedback(network, "0")
    except ChainUnavailable as error:
        return Check(name, works=False, says=error.message, mend=mend)
    except TimeoutError:
        return Check(name, works=False, says=f"no answer within {CHAIN_S:g} s", mend=mend)
    return Check(name, works=True, says=f"chain id {network.chain_id}, registries answer")
