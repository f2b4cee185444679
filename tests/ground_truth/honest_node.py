"""Honest agents from npm: the MCP project's reference server, its TypeScript SDK, and Express.

They run as processes of their own; what their operators add in front is the file that proves
control, which a stock server does not offer.
"""

import asyncio
import json
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from tests.ground_truth.site import Build, Built, Site, Spec
from tests.ground_truth.web_parts import own_file
from tests.support.node import installed

STARTS_S = 30
_HOP = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "host",
}
SCRIPT = Path(__file__).with_name("node_agents.mjs")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


async def _listens(port: int) -> None:
    for _ in range(STARTS_S * 20):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    message = "a node process did not start"
    raise TimeoutError(message)


async def _process(site: Site, port: int, *command: str) -> None:
    environment = {"PORT": str(port), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    process = await asyncio.create_subprocess_exec(
        "node", *command, env=environment,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip

    async def end() -> None:
        if process.returncode is None:
            process.terminate()
            await process.wait()

    site.stack.push_async_callback(end)
    await _listens(port)


async def _in_front(site: Site, port: int) -> None:
    """A reverse proxy that adds the proof; bodies stream through it."""
    session = ClientSession(timeout=ClientTimeout(total=None), auto_decompress=False)
    site.stack.push_async_callback(session.close)

    async def forward(request: web.Request) -> web.StreamResponse:
        if request.path == "/.well-known/agent-registration.json":
            return web.json_response(own_file(site))
        sent = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        url = f"http://127.0.0.1:{port}{request.rel_url}"
        body = await request.read()
        try:
            async with session.request(
                request.method, url, headers=sent, data=body, allow_redirects=False
            ) as answer:
                named: Mapping[str, str] = {
                    k: v for k, v in answer.headers.items() if k.lower() not in _HOP
                }
                out = web.StreamResponse(status=answer.status, headers=named)
                await out.prepare(request)
                async for chunk in answer.content.iter_any():
                    await out.write(chunk)
                return out
        except (ClientError, ConnectionError):
            return web.json_response({"error": "bad gateway"}, status=502)

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", forward)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    site.stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, *site.address).start()


def everything(transport: str, path: str) -> Build:
    """The reference server."""

    async def build(site: Site) -> Built:
        folder = installed()
        assert folder is not None
        port = _free_port()
        script = folder / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
        await _process(site, port, str(script), transport)
        await _in_front(site, port)
        return Built([("MCP", site.url + path)])

    return build


def script(role: str, service: str, path: str) -> Build:
    """A part of `node_agents.mjs`."""

    async def build(site: Site) -> Built:
        folder = installed()
        assert folder is not None
        port = _free_port()
        copy = folder / SCRIPT.name
        shutil.copy(SCRIPT, copy)  # modules are looked for beside the script
        await _process(site, port, str(copy), json.dumps({"role": role, "public": site.url}))
        await _in_front(site, port)
        return Built([(service, site.url + path)])

    return build


def _n(name: str, build: Build, kind: str) -> Spec:
    return Spec(kind, name, "honest", build, served=False)


AGENTS = (
    [
        _n("Reference server (npm)", everything("streamableHttp", "/mcp"), "mcp"),
        _n("Reference server, SSE (npm)", everything("sse", "/sse"), "mcp"),
        _n("Units (MCP TypeScript)", script("mcp", "MCP", "/mcp"), "mcp"),
        _n("Tides (Express)", script("express", "REST API", "/openapi.json"), "http"),
        _n(
            "Prime desk (Express, A2A)", script("a2a", "A2A", "/.well-known/agent-card.json"), "a2a"
        ),
    ]
    if shutil.which("node") and shutil.which("npm")
    else []
)
