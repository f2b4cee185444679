"""Deposited credentials from the terminal: `assay visits deposit`, `credentials` and `erase`."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_demo.world import World
from tests.support.assay import Served, served
from tests.support.commands import command

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
VALUE = "Bearer 8Qp3vR6nTz1yLk5wXm2sHd9f"


@pytest.fixture(scope="module")
def office(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("office")
    with served(folder, {"local": dict(world.network_override)}) as running:
        # Control of an address is proven by an evaluation: nobody deposits for what is not theirs.
        proven = command("evaluate", world.agents[0].agent_id, environment=running.environment)
        assert proven.returncode == 0, proven.stderr
        yield running


def visits(office: Served, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return command("visits", *words, environment=office.environment, stdin=stdin)


def test_a_credential_is_deposited_listed_and_erased_and_never_printed(
    office: Served, world: World
) -> None:
    agent = world.agents[0]
    made = visits(office, "deposit", agent.agent_id, agent.url, stdin=VALUE + "\n")
    assert made.returncode == 0, made.stderr
    credential, url, place, name = made.stdout.split()
    assert (place, name) == ("header", "Authorization")
    assert url.startswith("http://127.0.0.1:")
    listed = visits(office, "credentials", agent.agent_id)
    assert listed.stdout.startswith(f"{credential}  {url}  header Authorization, set 20")
    assert listed.stdout.endswith("not used yet\n")
    for kept in Path(office.environment["ASSAY_DATA_DIR"]).glob("assay.db*"):
        assert VALUE.encode() not in kept.read_bytes()
    assert VALUE not in made.stdout + made.stderr + listed.stdout + listed.stderr
    erased = visits(office, "erase", agent.agent_id, credential)
    assert (erased.returncode, erased.stdout) == (0, f"{credential} is erased\n")
    assert visits(office, "credentials", agent.agent_id).stdout == ""


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("deposit", "{agent}", "http://127.0.0.1:9/elsewhere"), VALUE, "url"),
        (("deposit", "{agent}", "{url}", "--name", "Host"), VALUE, "name"),
        (("deposit", "{agent}", "{url}"), "", "value"),
        (("deposit", "999", "{url}"), VALUE, "knows no agent"),
        (("erase", "{agent}", "nothing"), "", "credential"),
    ],
)
def test_what_cannot_be_deposited_is_said_and_why(
    office: Served, world: World, words: tuple[str, ...], stdin: str, said: str
) -> None:
    agent = world.agents[0]
    filled = [word.format(agent=agent.agent_id, url=agent.url) for word in words]
    done = visits(office, *filled, stdin=stdin)
    assert done.returncode == 1
    assert said in done.stderr.lower()
    assert VALUE not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
