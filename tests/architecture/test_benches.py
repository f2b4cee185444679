"""Every bench starts: what it imports is there, also where no test runs it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BENCHES = [
    path.stem
    for path in sorted((ROOT / "bench").glob("*.py"))
    if "ArgumentParser(" in path.read_text("utf-8") and path.stem != "load"
]
"""`load` is a part of others, that they start with JSON on its input."""

ASKED = """
import json, os, runpy, sys, tempfile, traceback
import assay.app, assay.probing.clients.mcp, assay_demo.world

def be(name):
    status, sys.argv = 0, [name, "--help"]
    try:
        runpy.run_module(f"bench.{name}", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)

said = {}
for name in sys.argv[1:]:
    with tempfile.TemporaryFile("w+") as texts:
        pid = os.fork()
        if pid == 0:
            os.dup2(texts.fileno(), 1)
            os.dup2(texts.fileno(), 2)
            be(name)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        texts.seek(0)
        said[name] = status, texts.read()
print(json.dumps(said))
"""
"""Asks each bench in a process of its own, forked from one that has imported the service."""


@pytest.fixture(scope="module")
def said() -> Mapping[str, tuple[int, str]]:
    """Exit status and output of every bench."""
    command = [sys.executable, "-c", ASKED, *BENCHES]
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}:{ROOT / 'bench'}", "COLUMNS": "100"}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BENCHES)
def test_a_bench_says_how_it_is_used(said: Mapping[str, tuple[int, str]], name: str) -> None:
    status, output = said[name]
    assert status == 0, output
    assert "usage:" in output
