"""The files of `deploy/` agree with the service, with each other and with the pages."""

import json
import re
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.cli.serve import DRAIN_S
from assay.settings import Settings
from tests.support.forked import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
NODES = ("node1", "node2", "node3")
NOTICED_S = 6
"""Three failed checks, one each two seconds: HAProxy and the readiness probe are set so."""


def secrets(folder: Path, address: str = "https://assay.example.com") -> Path:
    """What `make-secrets` writes into a new folder."""
    made = folder / "secrets"
    subprocess.run([DEPLOY / "make-secrets", address, made], check=True, capture_output=True)
    return made


def manifests() -> dict[str, Any]:
    """The documents of the Kubernetes manifest, by kind."""
    text = (DEPLOY / "kubernetes/assay.yaml").read_text("utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def pod() -> Any:
    return manifests()["Deployment"]["spec"]["template"]["spec"]


def unit() -> dict[str, list[str]]:
    """The assignments of the systemd unit."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "assay.service").read_text("utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_every_setting_that_a_file_names_exists() -> None:
    known = {f"ASSAY_{name.upper()}" for name in Settings.model_fields} | {"ASSAY_CONFIG"}
    for path in (DEPLOY / "Dockerfile", DEPLOY / "kubernetes/assay.yaml", DEPLOY / "assay.service"):
        text = re.sub(r"(?m)^ *#.*$", "", path.read_text("utf-8"))
        named = set(re.findall(r"ASSAY_[A-Z_]+", text))
        assert named
        assert named <= known, path.name
    for node in NODES:
        assert set(COMPOSE["services"][node]["environment"]) <= known


def test_a_stopping_node_has_the_time_that_the_balancer_and_running_calls_need(
    tmp_path: Path,
) -> None:
    given = tomllib.loads((secrets(tmp_path) / "assay.toml").read_text("utf-8"))
    kubernetes = int(manifests()["ConfigMap"]["data"]["ASSAY_UNREADY_S"])
    probe = pod()["containers"][0]["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == NOTICED_S
    assert "check inter 2s fall 3 " in (DEPLOY / "haproxy.cfg").read_text("utf-8")
    assert min(given["unready_s"], kubernetes) > NOTICED_S
    for node in NODES:
        grace = seconds(COMPOSE["services"][node]["stop_grace_period"])
        assert grace > given["unready_s"] + DRAIN_S
    assert pod()["terminationGracePeriodSeconds"] > kubernetes + DRAIN_S
    assert int(unit()["TimeoutStopSec"][0]) > given["unready_s"] + DRAIN_S


def test_kubernetes_sets_no_settings_of_its_own_making() -> None:
    """A Service named `assay` would give each pod `ASSAY_PORT`, which the service refuses."""
    assert pod()["enableServiceLinks"] is False


def test_no_container_has_more_rights_than_it_needs() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert re.findall(r"(?m)^USER (.*)$", text)[-1] == "10001:10001"
    assert re.findall(r"(?m)^(?:COPY|ADD) .*secret.*$", text) == []
    for node in NODES:
        one = COMPOSE["services"][node]
        assert (one["read_only"], one["cap_drop"]) == (True, ["ALL"])
    [container] = pod()["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod()["securityContext"]["runAsUser"] == 10001


def test_only_the_balancer_listens_beyond_loopback() -> None:
    ports = {name: one.get("ports", []) for name, one in COMPOSE["services"].items()}
    assert ports.pop("balancer") == ["80:8080", "443:8443"]
    assert all(port.startswith("127.0.0.1:") for found in ports.values() for port in found)
    assert COMPOSE["networks"]["data"] == {"internal": True}
    for name in ("postgres", "valkey"):
        assert COMPOSE["services"][name]["networks"] == ["data"]


def test_every_service_of_compose_has_a_health_check_and_no_password_of_its_own() -> None:
    checked = {name for name, one in COMPOSE["services"].items() if "healthcheck" in one}
    assert set(COMPOSE["services"]) - checked == set(NODES)  # theirs is the image's
    assert "HEALTHCHECK" in (DEPLOY / "Dockerfile").read_text("utf-8")
    for one in COMPOSE["services"].values():
        for name, value in one.get("environment", {}).items():
            assert "PASSWORD" not in name or str(value).startswith("/run/secrets/"), name


def test_addresses_of_compose_agree(tmp_path: Path) -> None:
    """Of nodes and balancer, and whom nodes trust and Prometheus asks."""
    services = COMPOSE["services"]
    at = {
        name: services[name]["networks"]["front"]["ipv4_address"] for name in (*NODES, "balancer")
    }
    given = tomllib.loads((secrets(tmp_path) / "assay.toml").read_text("utf-8"))
    assert given["trusted_proxies"] == [at["balancer"]]
    for number, name in enumerate(NODES, 1):
        one = services[name]["environment"]
        assert one["ASSAY_HOST"] == at[name]
        assert services["balancer"]["environment"][f"ASSAY_NODE_{number}"] == f"{at[name]}:8787"
    jobs = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    asked = {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs}
    assert asked["assay"] == [services[n]["environment"]["ASSAY_OPS_BIND"] for n in NODES]
    assert asked["haproxy"] == [services["balancer"]["environment"]["ASSAY_BALANCER_STATISTICS"]]


def test_drawn_secrets_are_new_each_time_and_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    made, other = secrets(tmp_path), secrets(tmp_path / "other")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    declared = {one["file"].rpartition("/")[2] for one in COMPOSE["secrets"].values()}
    assert {path.name for path in made.iterdir()} == declared
    for path in made.iterdir():
        assert path.read_bytes() != (other / path.name).read_bytes(), path.name
    again = subprocess.run(
        [DEPLOY / "make-secrets", "https://assay.example.com", made],
        check=False,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 64
    assert "drawn once" in again.stderr


@pytest.mark.parametrize(
    "address",
    ["http://a.example", "https://", 'https://a"b', "https://a.example/x", "https://a\nb", ""],
)
def test_an_address_that_could_change_the_configuration_is_refused(
    address: str, tmp_path: Path
) -> None:
    made = tmp_path / "secrets"
    done = subprocess.run(
        [DEPLOY / "make-secrets", address, made], check=False, capture_output=True, text=True
    )
    assert done.returncode == 64
    assert not made.exists()


def test_every_alert_has_a_runbook_on_the_page() -> None:
    page = (ROOT / "docs/night-shift.md").read_text("utf-8")
    [group] = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
    for rule in group["rules"]:
        name = rule["alert"]
        assert rule["annotations"]["runbook"] == f"docs/night-shift.md#{name.lower()}"
        assert re.search(rf"(?m)^### {name}\n\n\S", page), name
        assert rule["labels"]["severity"] in {"page", "ticket"}
    headings = re.findall(r"(?m)^### (Assay\w+)$", page)
    assert headings == [rule["alert"] for rule in group["rules"]]


def test_every_alert_is_tested_where_it_fires_and_where_it_does_not() -> None:
    tests = yaml.safe_load((DEPLOY / "alerts.test.yml").read_text("utf-8"))["tests"]
    cases = [case for one in tests for case in one["alert_rule_test"]]
    [group] = yaml.safe_load((DEPLOY / "alerts.yml").read_text("utf-8"))["groups"]
    names = {rule["alert"] for rule in group["rules"]}
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == names
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == names


def test_panels_of_the_dashboard_do_not_overlap_and_name_their_source() -> None:
    panels = json.loads((DEPLOY / "grafana/assay.json").read_text("utf-8"))["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["datasource"]["uid"] == "prometheus"
    assert len({panel["id"] for panel in panels}) == len(panels)
