"""The public pages in Debian's Chromium, with a serving Assay that evaluated the demo's agents."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay.db.engine import Database
from assay_demo.world import World
from tests.support.assay import Served, served
from tests.support.debian import program
from tests.support.hostile_texts import HOSTILE
from tests.support.listed import put_agents
from tests.support.node import needs_node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

BROWSER = Path(__file__).parents[1] / "support" / "browser"
RUN_S = 400
STEADY, HOSTILE_ONE = 0, 2
PLAIN = ("/", "/agents", "/agents?tier=AAA", "/agents/local/99", "/probes", "/probes/no_cross_talk")
WIDTHS = [360, 768, 1280]


async def _put(data_dir: Path, agents: dict[str, tuple[str, ...]]) -> None:
    database = await Database.open(f"sqlite:///{data_dir / 'assay.db'}")
    await put_agents(database, agents)
    await database.close()


@pytest.fixture(scope="module")
def server(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("assay")
    with served(folder, {"local": world.network_override}) as running:
        with httpx2.Client(base_url=running.address, timeout=60, trust_env=False) as http:
            for agent in (*world.agents, world.agents[STEADY]):
                asked = http.post(f"/operator/trigger-sandbox/{agent.agent_id}")
                assert asked.status_code == 200, asked.text
        harmful = {
            str(1000 + place): HOSTILE[place : place + 3] for place in range(0, len(HOSTILE) - 2, 3)
        }
        asyncio.run(_put(folder, harmful))
        yield running


def opened(server: Served, paths: list[str], widths: list[int], **more: object) -> Any:
    folder = needs_node(BROWSER)
    shutil.copy(BROWSER / "pages.mjs", folder / "pages.mjs")  # modules are looked for beside it
    chromium = program("chromium-headless-shell")
    asked = {
        "address": server.address,
        "paths": paths,
        "widths": widths,
        "schemes": ["light", "dark"],
        "chromium": chromium.path,
        "environment": chromium.environment(),
        "unfold": True,
        **more,
    }
    done = subprocess.run(
        ["node", "pages.mjs", json.dumps(asked)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_each_page_fits_each_width_in_light_and_dark_and_loads_nothing_from_elsewhere(
    server: Served,
) -> None:
    """No error, no violation of the policy, no script, no cookie, no scrolling sideways."""
    reports = [f"/agents/local/{agent}" for agent in (STEADY, HOSTILE_ONE)]
    paths = [*PLAIN, "/methodology", *reports]
    found = opened(server, paths, WIDTHS, axe=True)
    assert found["opened"] == len(paths) * len(WIDTHS) * 2
    for name in ("console", "foreign", "overflow", "scripts", "axe"):
        assert found[name] == [], name
    assert found["cookies"] == 0
    assert found["titles"][reports[0]].endswith("Assay report")


def test_hostile_names_descriptions_and_addresses_are_shown_inert(server: Served) -> None:
    ids = range(1000, 1000 + len(HOSTILE) - 2, 3)
    paths = ["/agents?limit=100", *(f"/agents/local/{number}" for number in ids)]
    found = opened(server, paths, [360], schemes=["light"])
    assert found["opened"] == len(paths)
    for name in ("console", "foreign", "overflow", "scripts"):
        assert found[name] == [], name
