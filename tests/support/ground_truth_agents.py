"""Agents of the ground truth in this process, each at a port of its own."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn

from tests.ground_truth.serve import Street, build, proving
from tests.ground_truth.site import SimulatedClock, Site, registration

REGISTRY = "eip155:31337:0x" + "8004" * 10


@asynccontextmanager
async def running(
    folder: Path, specs: Mapping[str, Any]
) -> AsyncGenerator[Mapping[str, Mapping[str, Any]]]:
    """Their registration files, by name."""
    clock = SimulatedClock(folder / "clock")
    doors = {name: socket.create_server(("127.0.0.1", 0), backlog=64) for name in specs}
    for listening in doors.values():
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sites: dict[str, Site] = {}
    for number, (name, listening) in enumerate(doors.items(), 1):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        wallet, proof = f"0x{number:040x}", specs[name].proof
        sites[name] = Site(name, url, number, wallet, REGISTRY, clock, sites, proof)
    street, files, used = Street(), {}, []
    async with AsyncExitStack() as stack:
        for name, site in sites.items():
            await stack.enter_async_context(site.stack)
            if not specs[name].served:
                doors[name].close()
            built = await build(specs[name], site)
            files[name] = registration(site, built)
            if built.app is None:
                doors[name].close()
            else:
                street.apps[site.address] = site, proving(specs[name], site, built, built.app)
                used.append(doors[name])
        server = uvicorn.Server(uvicorn.Config(street, log_config=None, lifespan="off"))
        serving = asyncio.get_running_loop().create_task(server.serve(sockets=used))
        try:
            yield files
        finally:
            server.should_exit = server.force_exit = True
            await serving


@asynccontextmanager
async def endpoints_of(
    specs: Mapping[str, Any], folder: Path, *kinds: str
) -> AsyncGenerator[Mapping[str, str]]:
    """Those of these kinds of a set, in this process; their first endpoints by name."""
    wanted = {name: spec for name, spec in specs.items() if spec.kind.split()[1] in kinds}
    async with running(folder, wanted) as files:
        yield {name: file["services"][0]["endpoint"] for name, file in files.items()}
