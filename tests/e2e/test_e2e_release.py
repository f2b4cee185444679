"""`tools/release`: the wheel and its bill of materials, the same bytes in every folder."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "tools", "requirements", "pyproject.toml", "README.md", "LICENSE", ".gitignore")


def build(folder: Path, umask: int, **environment: str) -> Path:
    """A release of a copy of the sources that lies in `folder`."""
    folder.mkdir(parents=True)
    for name in SOURCES:
        found = ROOT / name
        copy = shutil.copytree if found.is_dir() else shutil.copy
        copy(found, folder / name)
    plain = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}  # noqa: TID251
    subprocess.run(
        [sys.executable, "tools/make_release.py", "--output", str(folder / "out")],
        cwd=folder,
        env=plain | environment,
        umask=umask,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder / "out"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("one") / "checkout", 0o022)


def the_bill(folder: Path) -> dict[str, object]:
    (file,) = folder.glob("*.cdx.json")
    return json.loads(file.read_text("utf-8"))


def locked() -> dict[str, tuple[str, set[str]]]:
    """What the lock says, by a reading of its own."""
    found: dict[str, tuple[str, set[str]]] = {}
    name = ""
    for line in (ROOT / "requirements/runtime.txt").read_text("utf-8").splitlines():
        if not line.startswith(" "):
            requirement = Requirement(line.removesuffix("\\").strip())
            name = requirement.name
            found[name] = (str(requirement.specifier).removeprefix("=="), set())
        else:
            found[name][1].add(line.removesuffix("\\").strip().removeprefix("--hash=sha256:"))
    return found


def test_two_builds_in_two_folders_are_the_same_bytes(released: Path, tmp_path: Path) -> None:
    again = build(tmp_path / "quite another place", 0o077)
    names = sorted(file.name for file in released.iterdir())
    assert names == sorted(file.name for file in again.iterdir())
    assert len(names) == 3
    for name in names:
        assert (released / name).read_bytes() == (again / name).read_bytes(), name


def test_the_time_of_the_build_is_the_one_that_is_set(tmp_path: Path) -> None:
    output = build(tmp_path / "dated", 0o022, SOURCE_DATE_EPOCH="1800000000")
    (wheel,) = output.glob("*.whl")
    assert {info.date_time[:3] for info in zipfile.ZipFile(wheel).infolist()} == {(2027, 1, 15)}
    about = the_bill(output)["metadata"]
    assert about["timestamp"] == "2027-01-15T08:00:00+00:00"


def test_the_wheel_holds_every_source_file_and_nothing_else(released: Path) -> None:
    (wheel,) = released.glob("*.whl")
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    tracked = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == tracked


def test_the_bill_is_valid_cyclonedx(released: Path) -> None:
    (file,) = released.glob("*.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text("utf-8")) is None


def test_the_bill_lists_every_locked_package_with_version_purl_and_hashes(released: Path) -> None:
    components = the_bill(released)["components"]
    told = {
        c["name"]: (c["version"], {h["content"] for h in c["hashes"] if h["alg"] == "SHA-256"})
        for c in components
    }
    assert told == locked()
    for component in components:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        assert component["bom-ref"] == component["purl"]


def test_licences_are_named_where_the_installed_package_names_one(released: Path) -> None:
    licences = {c["name"]: c.get("licenses", []) for c in the_bill(released)["components"]}
    assert licences["alembic"] == [{"license": {"id": "MIT"}}]
    assert licences["coincurve"] == [{"expression": "MIT OR Apache-2.0"}]
    unnamed = [name for name, found in licences.items() if not found]
    assert len(unnamed) <= len(licences) // 10, unnamed


def test_the_bill_says_what_needs_what(released: Path) -> None:
    bill = the_bill(released)
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in bill["dependencies"]}
    root = bill["metadata"]["component"]
    names = {ref.split("@")[0].removeprefix("pkg:pypi/") for ref in needs[root["bom-ref"]]}
    assert {"fastapi", "sqlalchemy", "httptools", "uvicorn"} <= names
    assert set(needs) == {c["bom-ref"] for c in bill["components"]} | {root["bom-ref"]}
    optional = {c["name"] for c in bill["components"] if c["scope"] == "optional"}
    assert {"py-evm", "valkey"} <= optional
    assert "fastapi" not in optional


def test_the_bill_and_the_sums_name_the_wheel(released: Path) -> None:
    (wheel,) = released.glob("*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    root = the_bill(released)["metadata"]["component"]
    assert root["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert f"{digest}  {wheel.name}" in (released / "SHA256SUMS").read_text("utf-8")


def test_the_command_is_one_and_says_how_it_is_used() -> None:
    done = subprocess.run(
        ["tools/release", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--output" in done.stdout
