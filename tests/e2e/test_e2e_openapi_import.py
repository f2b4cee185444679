"""`assay wrappers import`: drafts from a document, and the file of wrappers that keeps them."""

from pathlib import Path

import pytest

from tests.support.commands import command

EMAIL = "a@example.com"
DOCUMENT = Path(__file__).parents[1] / "wrappers" / "openapi" / "petstore-2.0.json"
PAYOUT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


class CommandLine:
    """`assay` over one folder with one account."""

    def __init__(self, folder: Path) -> None:
        self._environment = {"ASSAY_DATA_DIR": str(folder / "data")}
        self.file = folder / "wrappers.yaml"
        create = ("accounts", "create", EMAIL, "--name", "A")
        assert self.run(*create, stdin="a long password\n")[0] == 0

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """The status and what was printed: never a secret, never a traceback."""
        done = command(*arguments, environment=self._environment, stdin=stdin)
        assert "Traceback" not in done.stderr
        assert "hush" not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr

    def load(self, file: Path, *options: str, stdin: str = "") -> tuple[int, str, str]:
        priced = ("--price", "0.01", "--payout-address", PAYOUT)
        return self.run("wrappers", "import", EMAIL, str(file), *priced, *options, stdin=stdin)

    def export(self, *options: str) -> str:
        return self.run("wrappers", "export", EMAIL, *options)[1]


@pytest.mark.slow
def test_the_file_of_wrappers_keeps_drafts_as_drafts(tmp_path: Path) -> None:
    assay = CommandLine(tmp_path)
    status, out, error = assay.load(DOCUMENT, "--dry-run", "--operation", "POST /pet")
    assert (status, error) == (0, "")
    assert "3 would be created, 0 existed, 1 not imported" in out
    status, out, error = assay.load(DOCUMENT, "--operation", "POST /pet")
    assert (status, error) == (0, "")
    assert 'skipped  "DELETE /pet/{petId}": is not a GET: name it to import it' in out
    assert "3 created, 0 existed, 1 not imported" in out
    assert "0 created, 2 existed, 2 not imported" in assay.load(DOCUMENT)[1]

    assert assay.export() == "wrappers: []\n"
    drafts = assay.export("--inactive")
    assert drafts.count("active: false") == drafts.count("path:") == 3
    assay.file.write_text(drafts, "utf-8")
    apply = ("wrappers", "apply", EMAIL, str(assay.file))
    assert assay.run(*apply, "--prune") == (0, "nothing to do\n", "")
    assert assay.export("--inactive") == drafts

    assay.file.write_text(drafts.replace("  active: false\n", "", 1), "utf-8")
    assert "    active: false -> true\n" in assay.run(*apply)[1]
    assert assay.export().count("path:") == 1
    assay.file.write_text(drafts, "utf-8")
    assert "    active: true -> false\n" in assay.run(*apply)[1]
    assert assay.export() == "wrappers: []\n"


@pytest.mark.slow
def test_a_file_that_cannot_be_imported_is_refused_with_the_reason(tmp_path: Path) -> None:
    assay = CommandLine(tmp_path)
    bad = tmp_path / "bad.yaml"
    assert assay.load(bad)[0] == 1
    for text, reason in (
        (b"\xff", "is not UTF-8"),
        (b"a: [", "is neither JSON nor YAML"),
        (b"openapi: 4.0.0", "is not OpenAPI"),
    ):
        bad.write_bytes(text)
        status, out, error = assay.load(bad)
        assert (status, out) == (1, "")
        assert reason in error
    bad.write_text("openapi: 3.0.0\npaths: {/a: {get: {}}}\n", "utf-8")
    status, out, _ = assay.load(bad)
    assert status == 1
    assert 'refused  "GET /a": has no server with a whole address: name a target' in out
    secret = ("--auth-header", "x-api-key")
    status, _, error = assay.load(DOCUMENT, *secret, stdin="hush\n")
    assert status == 1
    assert "needs targetUrl" in error
    target = ("--target", "https://api.example.com", "--activate")
    assert assay.load(DOCUMENT, *secret, *target, stdin="hush\n")[0] == 0
    assert assay.export().count("upstreamAuthHeader: x-api-key") == 2
