"""The page that says how to prove control: an owner who copies it has a proof."""

import json
import re
from pathlib import Path

import pytest

from assay.chains.networks import Networks
from assay.control.ports import ControlledEndpoint
from assay.control.proofs import collect_control
from assay.control.statements import instructions
from assay.registries.model import OnchainAgent, Subject
from tests.support.fakes.control import FILE, World
from tests.support.fakes.trust import OWNER, WALLET

PAGE = (Path(__file__).parents[3] / "docs" / "grades.md").read_text("utf-8")
BASE = Networks.built_in().by_slug("base")
AGENT = Subject(BASE, "22", WALLET, OnchainAgent(BASE, "22", OWNER, WALLET, "data:,", None, None))
SERVICE = "https://agents.example.com/mcp"


def block(kind: str) -> str:
    found = re.search(
        f"## Prove that the services are yours.*?```{kind}\n(.*?)```", PAGE, re.DOTALL
    )
    assert found is not None
    return found[1]


async def proof(world: World) -> object:
    (row,) = await collect_control(AGENT, [ControlledEndpoint(SERVICE, "mcp")], world.needs)
    return row["proof"]


@pytest.fixture
def world() -> World:
    return World()


async def test_the_file_of_the_page_proves_control(world: World) -> None:
    world.hosts.pages["https://agents.example.com" + FILE] = block("json").encode()
    assert await proof(world) == "well_known"


async def test_the_record_of_the_page_proves_control(world: World) -> None:
    found = re.fullmatch(r'(\S+)\. TXT "(.+)"\n', block("text"))
    assert found is not None
    world.records.of[found[1]] = [found[2]]
    assert await proof(world) == "dns"


def test_the_page_shows_what_the_answers_say() -> None:
    what = instructions(AGENT, SERVICE)
    assert what is not None
    assert json.loads(what.file_text) == json.loads(block("json"))
    assert block("text") == f'{what.record_name}. TXT "{what.record_text}"\n'
