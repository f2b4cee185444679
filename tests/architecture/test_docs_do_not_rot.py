import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_settings_and_commands_pages_are_what_the_code_says() -> None:
    command = [sys.executable, "tools/generate_docs.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
        if "://" not in target
    ]
    broken = [(p.name, target) for p, target in links if not (p.parent / target).exists()]
    assert broken == []


def test_the_verbs_of_the_check_are_the_ones_that_are_described() -> None:
    script = (ROOT / "assay").read_text("utf-8")
    verbs = script.partition("\ncheck() {")[2].partition("\n}")[0]
    done = set(re.findall(r"(?m)^    (\w+)\)", verbs))
    taken = set(re.findall(r"'check (\w+)'", script))
    rows = re.findall(r"(?m)^\| `(\w+)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert done == {*rows, "check"}
    assert taken == set(rows)


def test_each_kind_of_change_has_one_heading_in_a_release() -> None:
    releases = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    kinds = [re.findall(r"(?m)^### (\w+)$", release) for release in releases]
    known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert all(len(found) == len(set(found)) and set(found) <= known for found in kinds)
    assert any(kinds)


def test_the_changelog_and_the_upgrade_page_have_a_section_for_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    assert re.search(heading, changes)
    assert f"\n## {version}\n" in (ROOT / "UPGRADING.md").read_text("utf-8")
