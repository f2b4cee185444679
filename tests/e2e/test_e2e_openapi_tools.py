"""Stock tools read the OpenAPI document: a linter, generators of clients, importers."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import needs_node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TOOLS = Path(__file__).parents[1] / "support" / "openapi_tools"
RUN_S = 300
STRICT = ["--strict", "--noEmit", "--target", "es2022", "--module", "esnext"]
STRICT += ["--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable", "--skipLibCheck"]


def run(folder: Path, *command: str | Path) -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(run(path.parent, sys.executable, "-m", "assay", "openapi"))
    return path


def tool(name: str) -> Path:
    return needs_node(TOOLS) / "node_modules" / ".bin" / name


def script(name: str, document: Path) -> Any:
    folder = needs_node(TOOLS)
    shutil.copy(TOOLS / name, folder / name)  # modules are looked for beside the script
    return json.loads(run(folder, "node", name, document))


def gate_requests(items: list[Mapping[str, Any]], inner: str) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if inner in item:
            yield from gate_requests(item[inner], inner)
        elif "operator/gate/" in json.dumps(item["request"]["url"]).replace('", "', "/"):
            yield item["request"]


def test_the_linter_finds_nothing(document: Path) -> None:
    run(document.parent, tool("redocly"), "lint", "--max-problems", "20", document)
    report = run(document.parent, tool("redocly"), "lint", "--format", "json", document)
    assert json.loads(report)["problems"] == []


def test_types_for_typescript_compile(document: Path) -> None:
    folder = document.parent
    run(folder, tool("openapi-typescript"), document, "--output", folder / "types.ts")
    run(folder, tool("tsc"), *STRICT, folder / "types.ts")


def test_a_client_for_typescript_compiles(document: Path) -> None:
    folder = document.parent
    run(folder, tool("openapi-ts"), "--input", document, "--output", folder / "client")
    run(folder, tool("tsc"), *STRICT, folder / "client" / "index.ts")


def test_a_client_for_python_can_be_imported(document: Path, tmp_path: Path) -> None:
    run(tmp_path, sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    locked = TOOLS / "requirements.txt"
    run(tmp_path, python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", locked)
    generator = tmp_path / "env" / "bin" / "openapi-python-client"
    run(tmp_path, generator, "generate", "--path", document, "--output-path", tmp_path / "client")
    loads = "import pkgutil, assay_client, importlib; [importlib.import_module(one.name) for one in"
    loads += " pkgutil.walk_packages(assay_client.__path__, 'assay_client.')]"
    run(tmp_path / "client", python, "-c", loads)


def test_a_postman_collection_keeps_the_gates_credentials_apart(document: Path) -> None:
    made = script("postman.cjs", document)
    (gate,) = gate_requests(made["item"], "item")
    names = {header["key"] for header in gate["header"]}
    assert names >= {"x-agent-address", "x-agent-session"}
    assert gate["auth"]["type"] == "apikey"
    assert {"{{apiKey}}", "{{bearerToken}}"} <= set(json.dumps(made).replace('"', " ").split())


def test_a_bruno_collection_has_the_gates_credentials(document: Path) -> None:
    (gate,) = gate_requests(script("bruno.mjs", document)["items"], "items")
    sent = {header["name"]: header["enabled"] for header in gate["headers"]}
    assert sent["x-agent-address"]
    assert sent["x-agent-session"]
    assert gate["auth"]["mode"] == "apikey"
