"""The inspector of the Model Context Protocol reads and calls the tools of `assay mcp`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_mcp import OPEN, ROOT, TOKEN, environment, hostile, over_http
from tests.support.node import needs_node

pytestmark = pytest.mark.slow

PACKAGES = Path(__file__).parents[1] / "support/mcp_inspector"
ANSWER_S = 120
__all__ = ["hostile"]


def inspected(*arguments: str) -> Any:
    program = needs_node(PACKAGES) / "node_modules/.bin/mcp-inspector"
    done = subprocess.run(
        [program, "--cli", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_over_standard_streams_it_lists_and_calls_the_tools(hostile: str) -> None:
    command = ["-e", f"PYTHONPATH={ROOT / 'src'}", sys.executable, "-m", "assay", "mcp"]
    command += ["--url", hostile]
    listed = inspected(*command, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in listed] == OPEN
    asked = ["--tool-name", "list_agents", "--tool-arg", "search=Weather"]
    called = inspected(*command, "--method", "tools/call", *asked)
    assert called["structuredContent"]["agents"][0]["agentId"] == "7"


def test_over_http_it_needs_the_token(hostile: str) -> None:
    with over_http(hostile, ASSAY_MCP_HTTP_TOKEN=TOKEN) as url:
        asked = ["--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]
        listed = inspected(url, *asked, "--method", "tools/list")["tools"]
        assert [tool["name"] for tool in listed] == OPEN
        with pytest.raises(AssertionError):
            inspected(url, "--transport", "http", "--method", "tools/list")
