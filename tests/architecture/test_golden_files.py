"""What is seen outside, stored or hashed stays: the code says what the golden files say."""

import json
from pathlib import Path

import pytest
from tools import golden
from tools.golden import GOLDEN, SUBJECTS, difference
from tools.golden_literals import Calls, arguments, byte_strings, modules, texts, values_at

ADVICE = """
These strings are public, stored or hashed: clients, databases, scripts and proofs rely on them. If
one changed by accident, change it back. If it has to change, say in UPGRADING.md what operators
must do, and run `python tools/golden.py {name}`. If it only moved, and the program no longer finds
it, fix the table at the top of tools/golden.py.
"""


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_code_says_what_the_golden_file_says(name: str) -> None:
    found = difference(name)
    assert not found, f"\n{found}{ADVICE.format(name=Path(name).stem)}"


def test_no_golden_file_is_left_without_its_subject() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {*SUBJECTS, "evidence"}


def test_no_schema_is_named_by_the_module_that_defines_it() -> None:
    """The generator names two classes of one name so: a move would then rename them."""
    document = json.loads((GOLDEN / "openapi.json").read_text("utf-8"))
    assert [name for name in document["components"]["schemas"] if "__" in name] == []


def test_agents_of_many_kinds_are_recorded() -> None:
    paths = sorted((GOLDEN / "evidence").rglob("*.json"))
    recorded = [json.loads(path.read_text("utf-8")) for path in paths]
    kinds = {one["kind"] for one in recorded}
    assert len(kinds) >= 40
    assert {one["truth"] for one in recorded} == {"honest", "immediate", "patient"}
    assert {row["evaluation"]["rung"] for one in recorded for row in one["visited"]} >= {0, 1, 2}


def test_every_recorded_evaluation_is_recomputed_to_its_own_hashes_and_score() -> None:
    """What the golden file says of them is what was stored when they were made."""
    verdicts = json.loads((GOLDEN / "verdicts.json").read_text("utf-8"))
    for folder, told in verdicts.items():
        assert told["verified"][-1].endswith(" 0 do not hold")
        for name, found in told["agents"].items():
            path = GOLDEN / "evidence" / folder / f"{name}.json"
            visited = json.loads(path.read_text("utf-8"))["visited"]
            for when, stored in (("first", visited[0]), ("last", visited[-1])):
                row = stored["evaluation"]
                then = (row["score"], row["rung"], row["tier"])
                assert (found[when]["score"], found[when]["rung"], found[when]["tier"]) == then


LOG = Calls(frozenset({"info", "warning"}), receivers=frozenset({"log"}))
STORE = Calls(frozenset({"put", "get"}), receivers=frozenset({"state"}))


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return folder


def test_events_are_found_where_the_log_is_called_and_by_an_alias(tmp_path: Path) -> None:
    source = (
        "def one(self, parser):\n"
        "    self.log.info('begun', at=1)\n"
        "    parser.warning('is no event')\n"
        "    say = self.log.info if self.good else self.log.warning\n"
        "    say('ended')\n"
    )
    assert arguments(modules(written(tmp_path, one=source)), LOG) == ["begun", "ended"]


def test_a_key_is_followed_to_where_it_is_made(tmp_path: Path) -> None:
    """Through functions, constants, properties, imports; what the source cannot know is a hole."""
    package = tmp_path / "package"
    package.mkdir()
    written(
        package,
        keys="PREFIX = 'far/'\ndef far(name):\n    return PREFIX + name\n",
        one=(
            "from package.keys import far\n"
            "NEAR = 'near/all'\n"
            "class Host:\n"
            "    @property\n"
            "    def name(self):\n"
            "        return 'host/' + digest(self.key)\n"
            "async def look(state, host, given):\n"
            "    place = f'{host.name}/{1 + 1}'\n"
            "    await state.put(place, '1')\n"
            "    await state.get(NEAR)\n"
            "    await state.get(far(given))\n"
            "    await state.get(given)\n"
        ),
    )
    assert arguments(modules(package), STORE) == ["far/{}", "host/{}/{}", "near/all"]


def test_literals_are_found_by_their_form_and_docstrings_are_none(tmp_path: Path) -> None:
    source = (
        '"""assay-not-this"""\n'
        "made = TemporaryDirectory(prefix='assay-nor-this-')\n"
        "LABEL = b'assay.box|'\n"
        "def sign(seed):\n"
        "    return {'event': 'signed', 'by': f'assay.visit.v1/{seed}', 'for': 'assay-mark'}\n"
    )
    sources = modules(written(tmp_path, one=source))
    assert texts(sources, golden.MARK) == ["assay-mark"]
    assert texts(sources, golden.FORMAT) == ["assay.visit.v1/"]
    assert byte_strings(sources, golden.LABEL) == ["assay.box|"]
    assert values_at(sources, "event") == ["signed"]
