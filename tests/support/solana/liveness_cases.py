"""The golden liveness reports of the SDK, to be had again on loopback.

The hosts of a case are replaced by services that answer every question as the golden host did;
the expected report names them by their loopback addresses.

    with replayed("all-live") as case:
        assert report_of(case.agent_uri) == case.report
"""

import json
import re
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from tests.support.raw_server import Request
from tests.support.solana import golden, loopback
from tests.support.solana.loopback import Answer, Fault, as_json

NOTHING = Answer(404, b"", ())
HTML = ("Content-Type: text/html",)


@dataclass(repr=False)
class Replay:
    """A golden case on loopback."""

    name: str
    options: dict[str, Any]
    agent_uri: str | None
    """None: there is no such agent."""
    report: dict[str, Any] | None
    """Of the SDK, with the loopback addresses; None where the SDK throws `error`."""
    error: str | None
    probes: list[dict[str, Any]]
    hosts: dict[str, loopback.Service]

    def asked(self) -> list[tuple[str, str]]:
        """Method and path of every probe that has come, in no order."""
        every = [one for host in self.hosts.values() for one in host.requests]
        return sorted((one.method, one.target) for one in every)


def cases() -> list[str]:
    """The golden cases that can be replayed: those without addresses that nobody may dial."""
    found = golden.read("liveness")["cases"]
    return [one["name"] for one in found if one["name"] not in NOT_REPLAYED]


NOT_REPLAYED = {"private-hosts-blocked", "uri-private-host", "uri-ipfs-without-client"}


@contextmanager
def replayed(name: str, host: str = "127.0.0.1") -> Generator[Replay]:
    """`host`: what to call this machine in the addresses."""
    case = next(one for one in golden.read("liveness")["cases"] if one["name"] == name)
    probes: list[dict[str, Any]] = case.get("probes", [])
    named = re.findall(r'https://([^/"]+\.example)', json.dumps(case))
    hosts = {one: _replaying(probes, one) for one in sorted(set(named))}
    with ExitStack() as stack:
        for service in hosts.values():
            stack.enter_context(loopback.running(service))
        here = {f"https://{one}": _called(service, host) for one, service in hosts.items()}
        document = loopback.Service(lambda _: _registration(case, here))
        stack.enter_context(loopback.running(document))
        served = None if name == "unknown-agent" else f"{_called(document, host)}/a.json"
        uri = case.get("agentUri", served)
        report = _moved(case.get("report"), here)
        yield Replay(name, case.get("options", {}), uri, report, case.get("error"), probes, hosts)


def _called(service: loopback.Service, host: str) -> str:
    return service.url.replace("127.0.0.1", host)


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _replaying(probes: list[dict[str, Any]], host: str) -> loopback.Service:
    """Answers as the golden host did; it knows no other question."""
    table = {
        (probe["method"], probe["url"].partition(host)[2] or "/", probe.get("jsonRpcMethod")): probe
        for probe in probes
        if _host(probe["url"]) == host
    }

    def answer(request: Request) -> Answer | Fault:
        asked = json.loads(request.body)["method"] if request.method == "POST" else None
        probe = table.get((request.method, request.target, asked))
        if probe is None:
            return NOTHING
        told = probe["response"]
        if told == "network":
            return loopback.hang_up()
        if told == "timeout":
            return loopback.hang()
        headers = tuple(f"{name}: {value}" for name, value in told["headers"].items())
        return Answer(told["status"], told["body"].encode(), headers)

    return loopback.Service(answer)


def _registration(case: dict[str, Any], here: dict[str, str]) -> Answer:
    told: Any = case.get("metadata")
    if isinstance(told, dict) and "httpStatus" in told:
        return Answer(cast("int", told["httpStatus"]), b"", ())
    if isinstance(told, dict) and set(cast("dict[str, Any]", told)) == {"body"}:
        return Answer(200, cast("str", told["body"]).encode(), HTML)
    return as_json(_moved(told, here))


def _moved(value: Any, here: dict[str, str]) -> Any:
    """The same with loopback addresses in the place of the golden hosts."""
    text = json.dumps(value)
    for there, ours in here.items():
        text = text.replace(there, ours)
    return json.loads(text)
