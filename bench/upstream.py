"""The processes that `bench/wrapper.py` starts: the upstream, and each proxy before it.

Everything of theirs lives in one temporary folder, and ends with the benchmark.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from eth_account import Account

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from assay_demo.world import World  # noqa: E402
from gate import make_pro, port_of  # noqa: E402
from tests.support.assay import operator, served  # noqa: E402

NGINX, TUNED, NODE, ASSAY = "nginx", "nginx tuned", "node http-proxy", "assay free"
PAID, PAID_ON = "assay paid", "eip155:84532"
"""The local chain's test dollars stand where Base Sepolia's do."""
PLENTY = 100_000_000
FILES = {"1k": 1024, "100k": 100 * 1024, "10m": 10 * 1024 * 1024}

DEFAULT_BUFFERS = ""
TUNED_BUFFERS = "proxy_buffer_size 16k; proxy_buffers 8 32k; proxy_busy_buffers_size 128k;"
"""An answer of 100 KiB fits the buffers; the default 8 x 4 KiB are for pages."""

_NGINX = """
{user}
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  sendfile on;
  tcp_nopush on;
  default_type application/octet-stream;
  client_body_temp_path {folder}/client;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {inside}
}}
"""

_STATIC = """
  open_file_cache max=16 inactive=600s;
  open_file_cache_valid 600s;
  server {{ listen 127.0.0.1:{port} backlog=1024; root {root}; }}
"""

_PROXY = """
  upstream files {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://files;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      {buffers}
    }}
  }}
"""


@dataclass(frozen=True)
class Proxy:
    """A running proxy: the files are at `prefix` + name."""

    name: str
    pids: tuple[int, ...]
    port: int
    prefix: str = "/files/"
    headers: tuple[tuple[str, str], ...] = ()


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started inside runs on this core (on the only one, where there is one)."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(mine)[core % len(mine)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processes_of(pid: int) -> tuple[int, ...]:
    """A process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return (pid, *(p for child in children for p in processes_of(int(child))))


@contextmanager
def running(command: list[str], port: int, cwd: Path) -> Iterator[int]:
    """A process that listens on `port`; ended at the end. Yields its pid."""
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _await_port(process, port)
        yield process.pid
    finally:
        process.terminate()
        process.communicate(timeout=20)


def make_files(folder: Path) -> Path:
    """A root with the files below `/files/`."""
    root = folder / "root"
    files = root / "files"
    files.mkdir(parents=True)
    for name, size in FILES.items():
        (files / name).write_bytes(os.urandom(size))
    return root


@contextmanager
def static_nginx(folder: Path, root: Path) -> Iterator[int]:
    """The upstream. Yields its port."""
    port = free_port()
    with _nginx(folder / "static", _STATIC.format(port=port, root=root), port):
        yield port


def plain_proxies(
    stack: AsyncExitStack, folder: Path, upstream: int, only: Sequence[str]
) -> list[Proxy]:
    """nginx and Node, as far as wanted; a sentence about what is not there."""
    proxies: list[Proxy] = []
    with on_core(0):
        for name, buffers in ((NGINX, DEFAULT_BUFFERS), (TUNED, TUNED_BUFFERS)):
            if name in only:
                place = name.replace(" ", "-")
                pid, port = stack.enter_context(proxy_nginx(folder, place, upstream, buffers))
                proxies.append(Proxy(name, processes_of(pid), port))
        missing = install_http_proxy(folder) if NODE in only else None
        if missing:
            print(missing, file=sys.stderr)
        elif NODE in only:
            pid, port = stack.enter_context(proxy_node(folder, upstream))
            proxies.append(Proxy(NODE, processes_of(pid), port))
    return proxies


def assay_free(stack: AsyncExitStack, folder: Path, world: World, upstream: int) -> Proxy | None:
    """Assay with a free wrapper of the upstream: trust, rate limit and call log are on."""
    return assay(stack, folder / "free", world, {"pricePerCall": 0}, upstream)


def assay_paid(
    stack: AsyncExitStack, folder: Path, world: World, upstream: int, rpc_url: str
) -> Proxy | None:
    """The same, and every call pays in test dollars of the chain at `rpc_url`."""
    settings = {
        "ASSAY_PAYMENT_RPC": json.dumps({PAID_ON: [rpc_url]}),
        "ASSAY_X402_PRIVATE_KEY": world.settler_key,
        "ASSAY_X402_CLOCK_S": "86400",
        "ASSAY_GAS_FREE_SETTLEMENTS": "1000000",
        "ASSAY_GAS_FREE_SETTLEMENTS_SHARED": "1000000",
        "ASSAY_PAYOUT_ADDRESS": world.seller,
    }
    terms = {"pricePerCall": 0.0001, "paymentNetwork": PAID_ON}
    return assay(stack, folder / "paid", world, terms, upstream, **settings)


def assay(
    stack: AsyncExitStack,
    data: Path,
    world: World,
    terms: Mapping[str, object],
    upstream: int,
    **settings: str,
) -> Proxy | None:
    """Assay on its own core with one wrapper; None where it has no wrappers."""
    settings |= {
        "ASSAY_WRAPPER_PER_MINUTE": str(PLENTY),
        "ASSAY_WRAPPER_UNREAD_MIB": str(PLENTY),
        "ASSAY_KEYED_PER_MINUTE": str(PLENTY),
        "ASSAY_LOG_LEVEL": "warning",
    }
    with on_core(0):
        chains = {"local": dict(world.network_override)}
        server = stack.enter_context(served(data, chains, **settings))
    assert server.process is not None
    with httpx2.Client(base_url=server.address, timeout=60, trust_env=False) as http:
        operator(http)
        make_pro(server.environment)
        operator_id, token = log_in(http)
        endpoint = {
            "path": "/files/*",
            "method": "GET",
            "targetUrl": f"http://127.0.0.1:{upstream}",
            "trustEnabled": True,
            "minScore": 0,
            "identityProof": "asserted",
            "rateLimit": PLENTY,
            **terms,
        }
        bearer = {"authorization": f"Bearer {token}"}
        made = http.post("/operator/endpoints", json=endpoint, headers=bearer)
        if made.status_code == 404:
            print("Assay: not served (404).", file=sys.stderr)
            return None
        assert made.is_success, made.text
        prefix = f"/wrap/{operator_id}/files/"
        headers = {"x-agent-address": Account.from_key(world.agents[0].owner_key).address}
        # The first call evaluates the agent and may take seconds.
        first = http.get(prefix + "1k", headers=headers)
        assert first.status_code == (402 if terms["pricePerCall"] else 200), first.text
    name = PAID if terms["pricePerCall"] else ASSAY
    pids = processes_of(server.process.pid)
    return Proxy(name, pids, port_of(server.address), prefix, tuple(headers.items()))


def log_in(http: httpx2.Client) -> tuple[str, str]:
    """Operator id and dashboard token of the account `operator` registers."""
    body = {"email": "op@example.com", "password": "correct horse battery"}
    answer = http.post("/operator/login", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["operator"]["id"], answer.json()["token"]


def say(text: str) -> None:
    print(text, file=sys.stderr)


@contextmanager
def proxy_nginx(folder: Path, name: str, upstream: int, buffers: str) -> Iterator[tuple[int, int]]:
    """`proxy_pass` with a kept-alive upstream and no log. Yields pid and port."""
    port = free_port()
    inside = _PROXY.format(port=port, upstream=upstream, buffers=buffers)
    with _nginx(folder / name, inside, port) as pid:
        yield pid, port


@contextmanager
def proxy_node(folder: Path, upstream: int) -> Iterator[tuple[int, int]]:
    """npm's `http-proxy`, installed into the folder. Yields pid and port."""
    port = free_port()
    script = folder / "node_proxy.mjs"
    shutil.copy(Path(__file__).with_name("node_proxy.mjs"), script)
    command = ["node", "--no-deprecation", str(script), str(port), str(upstream)]
    with running(command, port, folder) as pid:
        yield pid, port


def install_http_proxy(folder: Path) -> str | None:
    """None, or a sentence that says why there is no Node column."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "Node.js with npm is missing: no Node column."
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "http-proxy@1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        return "npm could not install http-proxy: no Node column."
    return None


@contextmanager
def _nginx(folder: Path, inside: str, port: int) -> Iterator[int]:
    folder.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""  # the folder is ours alone
    text = _NGINX.format(user=user, folder=folder, inside=inside)
    (folder / "nginx.conf").write_text(text, "utf-8")
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with running([*command, "-e", str(folder / "error.log")], port, folder) as pid:
        yield pid


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s and process.poll() is None:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.05)
    process.kill()
    said = process.communicate()[1].decode(errors="replace")
    raise SystemExit(f"{process.args!r} did not start: {said}")
