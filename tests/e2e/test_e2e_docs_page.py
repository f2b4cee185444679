"""The page /docs in Debian's Chromium, with a serving Assay."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from eth_account import Account

from assay_client import AgentSession, Assay
from tests.support.assay import served, sign
from tests.support.debian import program
from tests.support.node import needs_node
from tests.support.shop import NO_CHAIN

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BROWSER = Path(__file__).parents[1] / "support" / "browser"
RUN_S = 120
KEY = "0x" + "33" * 32
OTHER_DOCUMENT = "?url=http://127.0.0.1:9/api.json&configUrl=http://127.0.0.1:9/config.json"
ADDRESS = Account.from_key(KEY).address


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """What the script needs: the page's address, the browser, and credentials for the gate."""
    account = {"email": "op@example.com", "password": "correct horse battery", "name": "Op"}
    chromium = program("chromium-headless-shell")
    with served(tmp_path_factory.mktemp("assay"), NO_CHAIN) as server:
        with httpx2.Client(base_url=server.address, trust_env=False) as http:
            key = http.post("/operator/register", json=account).json()["apiKey"]
        with Assay(server.address) as assay:
            session = assay.open_session(AgentSession(ADDRESS, sign=lambda text: sign(KEY, text)))
        yield {
            "url": f"{server.address}/docs",
            "chromium": chromium.path,
            "environment": chromium.environment(),
            "credentials": {
                "operatorKey": f"Bearer {key}",
                "agentAddress": ADDRESS,
                "agentSession": session.token,
            },
            "agent": ADDRESS,
            "body": '{"minScore": 0}',
        }


def visited(asked: Mapping[str, Any], **more: object) -> Any:
    folder = needs_node(BROWSER)
    shutil.copy(BROWSER / "docs.mjs", folder / "docs.mjs")  # modules are looked for beside it
    done = subprocess.run(
        ["node", "docs.mjs", json.dumps({**asked, **more})],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("width", "query"), [(360, OTHER_DOCUMENT), (1280, "")])
def test_the_reference_is_shown_and_its_calls_are_answered(
    asked: Mapping[str, Any], width: int, query: str
) -> None:
    """No error, no violation of the policy, no foreign request, no horizontal scrolling.

    A link to the page cannot make it show another document.
    """
    found = visited(asked, width=width, url=f"{asked['url']}{query}", axe=width == 1280)
    assert (found["console"], found["foreign"], found["overflow"]) == ([], [], [])
    assert found["health"]["status"] == 200
    assert '"supportedChains"' in found["health"]["body"]
    assert found["gate"]["status"] == 200
    assert '"identityProven": true' in found["gate"]["body"]
    assert found["stored"] == 0  # credentials end with the page
    serious = [one for one in (*found["axe"], *found["axeDialog"]) if one.startswith(("s", "c"))]
    assert serious == []
