"""What `deploy/` describes works: as processes, with the very files, and after stock linters."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay import __version__
from tests.support.debian import program
from tests.support.deployment import DEPLOY, Deployment, deployment, expressions
from tests.support.eventually import eventually
from tests.support.forked import ROOT
from tests.support.linters import lint, lint_module
from tests.support.rolling_restarts import Restarts, calling
from tests.support.shop import Dollars

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

EXPOSURE_MAX = 1.5
"""Of `systemd-analyze security`: from 0, which is best, to 10."""

OPTIONAL = (
    *("assay_facilitator_", "assay_write_back_", "assay_payments_pending_oldest_seconds"),
    "assay_worker",
)
"""Absent in this deployment: it has no facilitator, no keypair of Solana, no pending payment, and
one process on each node."""


@pytest.fixture(scope="module")
def deployed(
    dollar_chain: Dollars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    with deployment(tmp_path_factory.mktemp("deployment"), dollar_chain) as made:
        yield made


def test_no_call_fails_while_each_node_is_restarted(deployed: Deployment) -> None:
    """At the times of the configuration: a node still answers for ten seconds."""
    made = Restarts()
    path = deployed.shop.wrap("/steady", 0).partition("/wrap/")[2]
    eventually(lambda: deployed.get(f"/wrap/{path}")[0] == 200)
    url = f"https://127.0.0.1:{deployed.port}/wrap/{path}"
    with calling(url, 30, made, deployed.context):
        for number, node in enumerate(deployed.nodes):
            node.stop(signal.SIGTERM)
            eventually(lambda number=number: not deployed.is_up(number))
            node.start()
            eventually(lambda number=number: deployed.is_up(number))
    assert made.failed == 0, made.answers
    assert made.answers["200"] >= 100


def test_prometheus_scrapes_every_node_and_the_balancer(deployed: Deployment) -> None:
    eventually(lambda: list(deployed.targets().values()), lambda found: found == ["up"] * 4)


def test_dashboard_and_alerts_name_only_what_is_scraped(deployed: Deployment) -> None:
    """Prometheus reads each expression; its metrics have samples with the labels that it names."""
    deployed.shop.wrap("/sold", 0.01)  # the settling key is read for networks that sell
    eventually(lambda: deployed.query("assay_settling_key_nonce_gap"))
    names: set[str] = set()
    for expression, text in expressions():
        deployed.query(expression)
        found = set(re.findall(r"\b(?:assay|haproxy)_\w+|\bup\b", expression))
        assert found, expression
        names |= found
        labels = set(re.findall(r"\{\{ ?(?:\$labels\.)?(\w+) ?\}\}", text)) - {"value"}
        labels |= set(re.findall(r"by \((\w+)\)", expression))
        labels |= set(re.findall(r'[{,](\w+)!?="', expression))
        for name in found:
            if not name.startswith(OPTIONAL):
                assert labels <= eventually(lambda name=name: deployed.labels(name)), expression
    known = set((ROOT / "tests/golden/metrics.txt").read_text("utf-8").split())
    own = {name for name in names if name.startswith("assay_")}
    unknown = {n for n in own if not {n, n.removesuffix("_total"), n.removesuffix("_info")} & known}
    assert unknown == set()
    shown = {n.removesuffix("_total").removesuffix("_info") for n in own}
    assert known - shown <= {
        "assay_session",
        "assay_write_back_wallet_balance_coins",
        "assay_write_back_wallet_read_age_seconds",
    }


def test_rules_are_what_their_unit_tests_say() -> None:
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        found = program("promtool")
        done = subprocess.run(
            [found.path, *command],
            cwd=DEPLOY,
            env=found.environment(),
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SUCCESS" in done.stdout


def test_stock_linters_accept_the_files() -> None:
    lint("hadolint", str(DEPLOY / "Dockerfile"))
    manifest = str(DEPLOY / "kubernetes/assay.yaml")
    said = lint("kubernetes-validate", "--strict", manifest)
    assert said.count(" passed ") == 7
    code = (
        "import sys, compose_spec as c; o = c.PyOptions(); o.apply_merge = True\n"
        "found = o.from_yaml(open(sys.argv[1]).read()); found.validate()\n"
        "print(*found.service_names())"
    )
    said = lint_module("-c", code, str(DEPLOY / "compose.yaml"))
    assert "node1 node2 node3 balancer postgres valkey prometheus grafana" in said


def test_systemd_accepts_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    found = program("systemd-analyze")
    text = (DEPLOY / "assay.service").read_text("utf-8")
    path = tmp_path / "assay.service"  # the program has to exist
    path.write_text(text.replace("/opt/assay/bin/assay", sys.executable), "utf-8")
    verify = [found.path, "verify", "--man=no", str(path)]
    done = subprocess.run(
        verify, env=found.environment(), check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    security = [found.path, "security", "--offline=true", "--no-pager", str(path)]
    said = subprocess.run(
        security, env=found.environment(), check=True, capture_output=True, text=True
    ).stdout
    [exposure] = re.findall(r"Overall exposure level for assay\.service: ([\d.]+)", said)
    assert float(exposure) <= EXPOSURE_MAX, said


def steps() -> Iterator[str]:
    """The commands of the build stage, in order."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    build = text.partition(" AS build\n")[2].partition("\nFROM ")[0]
    for command in re.findall(r"(?m)^RUN (.*)$", build):
        yield from (step.strip() for step in command.split("&&"))


def test_the_steps_of_the_dockerfile_install_the_service_from_its_lock(tmp_path: Path) -> None:
    """In an empty folder, with only the files that reach the builder."""
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").split()
    for name in [line[1:] for line in ignored if line.startswith("!")]:
        found = ROOT / name
        copy = shutil.copytree if found.is_dir() else shutil.copy
        copy(found, tmp_path / name)
    environment = {
        "PATH": f"{tmp_path}/builder/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "UV_PYTHON_DOWNLOADS": "never",
        **{n: v for n, v in os.environ.items() if n.startswith(("PIP_", "UV_", "SSL_"))},  # noqa: TID251
    }
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "builder"], check=True)
    for step in steps():
        done = subprocess.run(
            ["/bin/sh", "-c", step.replace("/opt/assay", str(tmp_path / "assay"))],
            cwd=tmp_path,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{shlex.join([step])}: {done.stdout}{done.stderr}"
    shutil.rmtree(tmp_path / "src")
    last = (DEPLOY / "Dockerfile").read_text("utf-8").rpartition("\nFROM ")[2]
    settings = dict(re.findall(r"\b(ASSAY_\w+)=(\S+)", last)) | {
        "ASSAY_DATA_DIR": str(tmp_path / "data"),
        "PATH": f"{tmp_path}/assay/bin:/usr/bin:/bin",
    }
    done = subprocess.run(
        ["assay", "--version"], cwd="/", env=settings, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == __version__
