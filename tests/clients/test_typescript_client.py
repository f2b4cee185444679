"""The TypeScript client against a serving Assay: Node programs, real servers, real sockets."""

import gzip
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
import pytest
from eth_account import Account

from tests.support.assay import operator, served, session, sign
from tests.support.eventually import eventually
from tests.support.node import needs_node
from tests.support.quiet_server import QuietHandler, serving
from tests.support.reverse_proxies import free_port
from tests.support.shop import NETWORK, NO_CHAIN, SELLER

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages" / "assay-client-ts"
PROGRAMS = Path(__file__).parent / "typescript"
RECIPES = ROOT / "recipes"
KEY = "0x" + "33" * 32
ADDRESS = Account.from_key(KEY).address
RUN_S = 120
SIZE_BYTES_MAX = 8 * 2**10
"""Of the core, minified and compressed; printed by the test."""
SPOOFED = {
    "x-assay-decision": "allow",
    "X-Assay-Tier": "AAA",
    "X_Assay_Tier": "AAA",
    "X-Assay-Decision-Token": "forged",
}


def run(folder: Path, *command: str | Path) -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built package; programs beside `package.json` import it by its name."""
    folder = tmp_path_factory.mktemp("client") / "package"
    ignored = shutil.ignore_patterns("node_modules", "dist", "openapi.ts")
    shutil.copytree(PACKAGE, folder, ignore=ignored)
    (folder / "node_modules").symlink_to(needs_node(PACKAGE) / "node_modules")
    document = ROOT / "tests" / "golden" / "openapi.json"
    run(folder, tool("openapi-typescript"), document, "--output", "src/openapi.ts")
    run(folder, tool("tsc"))
    for program in PROGRAMS.iterdir():
        shutil.copy(program, folder)
    return folder


@pytest.fixture(scope="module")
def application(package: Path) -> Path:
    """The folder of an application that has installed the package beside the frameworks."""
    folder = package.parent / "application"
    installed = folder / "node_modules"
    (installed / "@assay").mkdir(parents=True)
    (installed / "@assay" / "client").symlink_to(package)
    for one in (package / "node_modules").iterdir():
        (installed / one.name).symlink_to(one)
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def tool(name: str) -> Path:
    return needs_node(PACKAGE) / "node_modules" / ".bin" / name


@dataclass(frozen=True)
class Service:
    """What a program of the tests receives about the service, as JSON."""

    url: str
    key: str
    token: str
    operatorId: str  # noqa: N815 - a name of the program
    address: str
    signer: str
    wrapper: Mapping[str, str]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    class Signer(QuietHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            body = sign(KEY, text).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    wrapper = {
        "path": "/quote",
        "pricePerCall": "0.01",
        "targetUrl": "http://127.0.0.1:8099/",
        "paymentNetwork": NETWORK,
        "payoutAddress": SELLER.address,
    }
    with (
        served(tmp_path_factory.mktemp("assay"), NO_CHAIN) as server,
        serving(Signer) as signer,
        httpx2.Client(base_url=server.address, trust_env=False) as http,
    ):
        key = operator(http)["authorization"].removeprefix("Bearer ")
        account = {"email": "op@example.com", "password": "correct horse battery"}
        login = http.post("/operator/login", json=account).json()
        identifier = login["operator"]["id"]
        yield Service(server.address, key, login["token"], identifier, ADDRESS, signer, wrapper)


@pytest.fixture(scope="module")
def agent(running: Service) -> dict[str, str]:
    """The headers of an agent with a session."""
    with httpx2.Client(base_url=running.url, trust_env=False) as http:
        return session(http, KEY)


@pytest.mark.parametrize(
    "name",
    [
        "decides",
        "challenges",
        "wrappers",
        "account",
        "tokens",
        "forgeries",
        "secrets",
        "hostile",
        "repeats",
    ],
)
def test_the_client_keeps_its_contract(name: str, package: Path, running: Service) -> None:
    run(package, "node", "contract.mjs", name, json.dumps(asdict(running)))


Policy = Mapping[str, Any]


@contextmanager
def guarded(kind: str, package: Path, key: str, *cases: tuple[str, Policy]) -> Iterator[list[str]]:
    """The addresses of applications that a guard protects, one for each service and policy."""
    words = ["node", "guarded.mjs", kind, key, json.dumps(cases)]
    with subprocess.Popen(words, cwd=package, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], RUN_S)[0], f"{kind} does not start"
            yield json.loads(process.stdout.readline())
        finally:
            process.kill()


def get(url: str, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    return httpx2.get(url, headers=headers, trust_env=False, timeout=60)


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


KINDS = pytest.mark.parametrize("kind", ["fetch", "express", "hono", "next route", "next proxy"])


@KINDS
def test_a_guarded_application_admits_denies_and_challenges(
    kind: str, package: Path, running: Service, agent: dict[str, str]
) -> None:
    sent = {**agent, **SPOOFED}
    policies = [(running.url, {"minScore": score}) for score in (0, 100)]
    with guarded(kind, package, running.key, *policies) as [url, strict]:
        passed = get(url, sent)
        assert passed.status_code == 200, passed.text
        assert passed.json()["allow"] is True
        claims = {n for n in passed.json()["names"] if n.replace("_", "-").startswith("x-assay-")}
        if kind == "next proxy":
            assert claims == set(passed.json()["values"]) & claims
            assert "x_assay_tier" not in claims
            assert passed.json()["values"]["x-assay-tier"] != "AAA"
            assert passed.json()["values"]["x-assay-decision-token"] != "forged"
            assert "x-assay-decision" not in claims
        else:
            assert claims == set()
        nobody = get(url, SPOOFED)
        assert (nobody.status_code, nobody.json()["code"]) == (401, "identity_required")
        assert nobody.headers["cache-control"] == "no-store"
        unproven = get(url, {"x-agent-address": ADDRESS})
        assert (unproven.status_code, unproven.json()["code"]) == (401, "challenge_required")
        challenge = unproven.json()["challenge"]
        proof = {"x-agent-challenge": challenge, "x-agent-signature": sign(KEY, challenge)}
        begun = get(url, {"x-agent-address": ADDRESS, **proof})
        assert (begun.status_code, "x-agent-session" in begun.headers) == (200, True)
        denied = get(f"{strict}/?minScore=0", sent | {"x-min-score": "0"})
        assert (denied.status_code, denied.json()["code"]) == (403, "trust_denied")
        assert denied.json()["reasons"]
        assert "decisionToken" not in denied.json()


@KINDS
def test_malformed_and_unknown_callers_are_refused(
    kind: str, package: Path, running: Service, agent: dict[str, str]
) -> None:
    with guarded(kind, package, running.key, (running.url, {"minScore": 0})) as [url]:
        for malformed in (
            {"x-agent-id": "../me"},
            {"x-agent-address": ADDRESS, "x-chain": "another"},
            {"x-agent-address": ADDRESS, "x-agent-session": "a, b"},
        ):
            assert get(url, malformed).status_code == HTTPStatus.BAD_REQUEST
        unknown = get(url, {**agent, "x-agent-id": "999999999"})
        assert unknown.status_code in {401, 404, 503}, unknown.text


@KINDS
def test_without_a_decision_callers_pass_only_where_the_policy_says_so(
    kind: str, package: Path, running: Service, agent: dict[str, str]
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    cases: list[tuple[str, Policy, str, int]] = [
        (nowhere, {}, "/", 503),
        (nowhere, {"failOpen": "true"}, "/", 503),
        (nowhere, {"failOpen": True}, "/", 200),
        (nowhere, {"openPaths": ["/health"]}, "/health", 200),
        (nowhere, {"openPaths": ["/health"]}, "/health/", 503),
        (running.url, {"failOpen": True}, "/", 503),
    ]
    with guarded(kind, package, "svc_op_wrong", *(case[:2] for case in cases)) as addresses:
        for at, (_, _, path, status) in zip(addresses, cases, strict=True):
            found = get(at + path, {**agent, **SPOOFED})
            assert found.status_code == status, found.text
            if status == HTTPStatus.OK:
                assert found.json()["allow"] is None
                names = [name.replace("_", "-") for name in found.json()["names"]]
                assert not [name for name in names if name.startswith("x-assay-")]


def test_a_busy_service_is_429_and_an_impossible_policy_stops_the_start(package: Path) -> None:
    class Busy(QuietHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"code": "rate_limited", "message": "of the operator"}'
            self.send_response(429)
            self.send_header("retry-after", "7")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Busy) as url, guarded("fetch", package, "k", (url, {})) as [at]:
        found = get(at, {"x-agent-address": ADDRESS})
        assert (found.status_code, found.headers["retry-after"]) == (429, "7")
        assert "of the operator" not in found.text
    for score in (-1, "0"):
        cases = json.dumps([["http://127.0.0.1:1", {"minScore": score}]])
        words = ["node", "guarded.mjs", "fetch", "k", cases]
        done = subprocess.run(
            words, cwd=package, capture_output=True, text=True, timeout=RUN_S, check=False
        )
        assert done.returncode != 0
        assert "minScore must be a number" in done.stderr


@pytest.mark.parametrize("name", ["express", "hono"])
def test_a_recipe_for_node_admits_and_refuses(
    name: str, package: Path, running: Service, agent: dict[str, str]
) -> None:
    text = (RECIPES / name / "server.mjs").read_text("utf-8")
    assert text.count("minScore: 65") == 1
    (package / f"recipe-{name}.mjs").write_text(text.replace("minScore: 65", "minScore: 0"))
    port = free_port()
    own = {"ASSAY_URL": running.url, "ASSAY_KEY": running.key, "PORT": str(port)}
    environment = os.environ | own  # noqa: TID251
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(["node", f"recipe-{name}.mjs"], cwd=package, env=environment) as process:
        try:
            eventually(lambda: accepts(port))
            assert get(f"{url}/health").status_code == HTTPStatus.OK
            passed = get(f"{url}/quote", agent)
            assert (passed.status_code, "tier" in passed.json()) == (200, True)
            assert get(f"{url}/quote", {"x-assay-tier": "AAA"}).status_code == 401
        finally:
            process.kill()


TYPES = ["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck"]


def test_the_recipes_for_next_compile_and_decide(
    application: Path, running: Service, agent: dict[str, str]
) -> None:
    folder = application / "next-app"
    shutil.copytree(RECIPES / "next", folder)
    run(application, tool("tsc"), *TYPES, "--outDir", folder / "out", "--types", "node",
        folder / "proxy.ts", folder / "app/quote/route.ts")  # fmt: skip
    program = """
      import { NextRequest } from "next/server.js";
      const { proxy } = await import("./next-app/out/proxy.js");
      const { GET } = await import("./next-app/out/app/quote/route.js");
      const [path, headers] = JSON.parse(process.argv[2]);
      const statuses = [];
      for (const ask of [proxy, GET]) {
        statuses.push((await ask(new NextRequest(`http://localhost${path}`, { headers }))).status);
      }
      console.log(JSON.stringify(statuses));
    """
    (application / "next-app.mjs").write_text(program)
    own = {"ASSAY_URL": running.url, "ASSAY_KEY": running.key}
    for path, headers, statuses in (
        ("/quote", {}, [401, 401]),
        ("/quote", agent, [403, 403]),
        ("/health", {}, [200, 401]),
    ):
        done = subprocess.run(
            ["node", "next-app.mjs", json.dumps([path, headers])],
            cwd=application,
            env=os.environ | own,  # noqa: TID251
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=True,
        )
        assert json.loads(done.stdout) == statuses


def test_the_examples_of_the_readme_compile_and_run(
    application: Path, running: Service, agent: dict[str, str]
) -> None:
    text = (PACKAGE / "README.md").read_text("utf-8")
    examples = re.findall(r"```ts\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 7
    sent = {"authorization": f"Bearer {running.key}", **agent}
    gate = f"{running.url}/operator/gate/{ADDRESS}"
    token = httpx2.post(gate, json={"minScore": 0}, headers=sent, trust_env=False).json()
    names = {
        "ASSAY_URL": running.url,
        "API_KEY": running.key,
        "AGENT_ID": ADDRESS,
        "ADDRESS": ADDRESS,
        "SESSION": agent["x-agent-session"],
        "TOKEN": token["decisionToken"],
        "OPERATOR_ID": running.operatorId,
        "ISSUER": _issuer(token["decisionToken"]),
    }
    values = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in names.items())
    values += f"const SIGNER = {json.dumps(running.signer)};\n"
    values += "const SIGN = async (text: string) =>\n"
    values += "  (await fetch(SIGNER, { method: 'POST', body: text })).text();\n"
    files = []
    for number, example in enumerate(examples):
        files.append(application / f"example{number}.ts")
        files[-1].write_text(values + example)
    out = ("--outDir", "examples", "--types", "node")
    run(application, tool("tsc"), *TYPES, *out, *files)
    for number in range(len(examples)):
        run(application, "node", f"examples/example{number}.js")


def _issuer(token: str) -> str:
    import jwt  # noqa: PLC0415 - reads the issuer, as an operator would know it

    return str(jwt.decode(token, options={"verify_signature": False})["iss"])


def test_the_core_is_small_and_has_no_dependency(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = json.loads((package / "package.json").read_text("utf-8"))
    assert "dependencies" not in described
    lock = (PACKAGE / "package-lock.json").read_text("utf-8")
    assert '"resolved"' not in lock
    core = b""
    for name in ("errors", "transport", "session", "tokens", "client", "guard", "index"):
        minified = run(package, tool("terser"), f"dist/{name}.js", "--module", "-c", "-m")
        core += minified.encode()
    size = len(gzip.compress(core))
    timed = "const s = performance.now(); await import('@assay/client');"
    timed += " console.log((performance.now() - s).toFixed(1));"
    import_ms = run(package, "node", "--input-type=module", "-e", timed).strip()
    with capsys.disabled():
        sys.stdout.write(f"\n@assay/client: {size} bytes compressed, imported in {import_ms} ms\n")
    assert size <= SIZE_BYTES_MAX
