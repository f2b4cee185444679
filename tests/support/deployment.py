"""The topology of `deploy/compose.yaml` as processes: its own files, other addresses."""

import http.client
import json
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import yaml

from tests.support.assay import Served, served
from tests.support.databases import migrated_postgresql
from tests.support.debian import program
from tests.support.eventually import eventually
from tests.support.forked import ROOT
from tests.support.reverse_proxies import Command, Configure, Route, running
from tests.support.rolling_restarts import is_up
from tests.support.shop import ENGINE, NETWORK, NO_CHAIN, Dollars, Shop, free_port, upstream
from tests.support.valkey import valkey

DEPLOY = ROOT / "deploy"
SITE = "assay.example.com"


@dataclass
class Deployment:
    """Three nodes, a balancer, and a Prometheus that watches them."""

    folder: Path
    nodes: Sequence[Served]
    ops: Sequence[int]
    """The ports of the nodes' metrics."""
    port: int
    """Where the balancer takes HTTPS."""
    statistics: int
    shop: Shop
    prometheus: str

    @property
    def context(self) -> ssl.SSLContext:
        """Trusts the certificate that was drawn, for whichever name it is called by."""
        context = ssl.create_default_context(cafile=self.folder / "secrets/tls.pem")
        context.check_hostname = False
        return context

    def get(self, path: str) -> tuple[int, bytes]:
        """The balancer's answer to one GET."""
        wire = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context)
        wire.request("GET", path, headers={"host": SITE})
        answer = wire.getresponse()
        found = answer.status, answer.read()
        wire.close()
        return found

    def is_up(self, number: int) -> bool:
        return is_up(self.statistics, f"node{number + 1}")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples that Prometheus finds now; fails if the expression is not PromQL."""
        return self._ask(f"query?query={quote(expression)}")["result"]

    def labels(self, name: str) -> set[str]:
        """The labels of any sample of this metric."""
        found = self._ask(f"series?match[]={quote(name)}")
        return {label for series in found for label in series}

    def targets(self) -> dict[str, str]:
        """The health of each target, by its address."""
        found = self._ask("targets?state=active")["activeTargets"]
        return {one["labels"]["instance"]: one["health"] for one in found}

    def _ask(self, what: str) -> Any:
        answer = httpx2.get(f"{self.prometheus}/api/v1/{what}", timeout=20, trust_env=False)
        assert answer.status_code == 200, f"{what}: {answer.text}"
        return answer.json()["data"]


def _balancer(nodes: Sequence[int], plain: int, statistics: int, certificate: Path) -> Configure:
    def configure(folder: Path, routes: Sequence[Route]) -> Command:
        del folder
        found = program("haproxy")
        environment = found.environment() | {
            "ASSAY_BALANCER_HTTP": f"127.0.0.1:{plain}",
            "ASSAY_BALANCER_HTTPS": f"127.0.0.1:{routes[0].listen}",
            "ASSAY_BALANCER_CERTIFICATE": str(certificate),
            "ASSAY_BALANCER_STATISTICS": f"127.0.0.1:{statistics}",
            **{f"ASSAY_NODE_{n}": f"127.0.0.1:{port}" for n, port in enumerate(nodes, 1)},
        }
        return Command([found.path, "-db", "-f", str(DEPLOY / "haproxy.cfg")], environment)

    return configure


def prometheus_configuration(folder: Path, ops: Sequence[int], statistics: int) -> Path:
    """`deploy/prometheus.yml` with these addresses, and files of this folder."""
    text = (DEPLOY / "prometheus.yml").read_text("utf-8")
    for number, port in enumerate(ops, 21):
        text = _replaced(text, f"172.30.87.{number}:9464", f"127.0.0.1:{port}")
    text = _replaced(text, "172.30.87.10:8404", f"127.0.0.1:{statistics}")
    text = _replaced(text, "/run/secrets/metrics_token", str(folder / "secrets/metrics_token"))
    text = _replaced(text, "[alerts.yml]", f"[{DEPLOY / 'alerts.yml'}]")
    text = text.replace("15s", "1s")
    path = folder / "prometheus.yml"
    path.write_text(text, "utf-8")
    return path


def _replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _prometheus(configuration: Path) -> Configure:
    def configure(folder: Path, routes: Sequence[Route]) -> Command:
        found = program("prometheus")
        words = [
            found.path,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{routes[0].listen}",
        ]
        return Command(words, found.environment())

    return configure


@contextmanager
def deployment(folder: Path, chain: Dollars) -> Iterator[Deployment]:
    """All of it, once the balancer sends calls to each node."""
    secrets, ports, ops = folder / "secrets", _ports(), _ports()
    subprocess.run(
        [DEPLOY / "make-secrets", f"https://{SITE}", secrets], check=True, capture_output=True
    )
    statistics = free_port()
    settings = {
        "ASSAY_CONFIG": str(secrets / "assay.toml"),
        "ASSAY_DATABASE_URL": migrated_postgresql(),
        "ASSAY_STATE_URL": valkey().url,
        "ASSAY_TRUSTED_PROXIES": "127.0.0.1",
        "ASSAY_SIGN_UP": "open",
        "ASSAY_WRAPPER_PER_MINUTE": "10000000",
        "ASSAY_PAYMENT_RPC": json.dumps({NETWORK: [chain.url]}),
        "ASSAY_GAS_CAP": f"{NETWORK}=0.01",
        "ASSAY_X402_PRIVATE_KEY": ENGINE.key,
    }
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        nodes: list[Served] = []
        for port, ops_port in zip(ports, ops, strict=True):
            at = {"ASSAY_PORT": str(port), "ASSAY_OPS_BIND": f"127.0.0.1:{ops_port}"}
            node = stack.enter_context(served(folder / "data", NO_CHAIN, **settings, **at))
            node.address = f"http://127.0.0.1:{port}"
            nodes.append(node)
        client = stack.enter_context(httpx2.Client(base_url=nodes[0].address, timeout=40))
        store = Shop(nodes[0], client, chain, up)
        store.sign_up()
        balancer = _balancer(ports, free_port(), statistics, secrets / "tls.pem")
        [address] = stack.enter_context(running(balancer, ports[:1]))
        watched = prometheus_configuration(folder, ops, statistics)
        [prometheus] = stack.enter_context(running(_prometheus(watched), ports[:1]))
        port = int(address.rpartition(":")[2])
        made = Deployment(folder, nodes, ops, port, statistics, store, prometheus)
        for number in range(len(nodes)):
            eventually(lambda number=number: made.is_up(number))
        yield made


def _ports() -> list[int]:
    return [free_port() for _ in range(3)]


def expressions() -> Iterator[tuple[str, str]]:
    """Every PromQL expression of dashboard and alerts, with the texts that use its labels."""
    board = json.loads((DEPLOY / "grafana/assay.json").read_text("utf-8"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]
    [group] = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]:
        yield rule["expr"], rule["annotations"]["summary"]
