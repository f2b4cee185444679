"""`wrappers apply` and `export`: the file decides, and nothing of another account is touched."""

from pathlib import Path

import pytest

from assay.wrappers.wrapper_file import FILE_BYTES_MAX, BadWrapperFile, parse
from tests.support.commands import command

FILE = """\
wrappers:
  - path: /quote
    pricePerCall: 0
    targetUrl: https://api.example.com/v1
    description: 金属の価格
    upstreamAuthHeader: x-api-key
    upstreamAuthSecretFile: key.txt
  - path: /items/{id}
    method: POST
    pricePerCall: 0.000001
    targetUrl: https://api.example.com/v1/
    payoutAddress: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
    rateLimit: 60
"""


class CommandLine:
    """`assay` over one folder, with a file of wrappers and the file of its secret."""

    def __init__(self, folder: Path) -> None:
        self._environment = {"ASSAY_DATA_DIR": str(folder / "data")}
        self.file, self.key = folder / "wrappers.yaml", folder / "key.txt"
        self.file.write_text(FILE, "utf-8")
        self.key.write_text("hush-1\n", "utf-8")

    def run(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Return the status and what was printed: never a secret, never a traceback."""
        done = command(*arguments, environment=self._environment, stdin=stdin)
        assert "Traceback" not in done.stderr
        assert "hush" not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr

    def apply(self, *options: str, email: str = "a@example.com") -> tuple[int, str, str]:
        return self.run("wrappers", "apply", email, str(self.file), *options)

    def export(self, email: str = "a@example.com") -> str:
        return self.run("wrappers", "export", email)[1]


@pytest.fixture
def assay(tmp_path: Path) -> CommandLine:
    made = CommandLine(tmp_path)
    for email in ("a@example.com", "b@example.com"):
        create = ("accounts", "create", email, "--name", "A")
        assert made.run(*create, stdin="a long password\n")[0] == 0
    return made


@pytest.mark.slow
def test_a_second_run_has_nothing_to_do_nor_has_one_of_the_export(assay: CommandLine) -> None:
    status, out, error = assay.apply("--dry-run")
    assert (status, out.count("create")) == (2, 2), error
    assert assay.export() == "wrappers: []\n"
    assert assay.apply()[0] == 0
    assert assay.apply() == (0, "nothing to do\n", "")
    assay.file.write_text(assay.export(), "utf-8")
    assert assay.apply("--dry-run", "--prune") == (0, "nothing to do\n", "")

    assay.key.write_text("hush-2\n", "utf-8")
    assay.file.write_text(FILE.replace("rateLimit: 60", "rateLimit: 90"), "utf-8")
    status, out, _ = assay.apply()
    assert status == 0
    assert "    rateLimit: 60 -> 90\n" in out
    assert "    upstreamAuthSecret: changed\n" in out


@pytest.mark.slow
def test_only_this_account_is_pruned_and_one_bad_entry_stops_all(assay: CommandLine) -> None:
    assert assay.apply()[0] == assay.apply(email="b@example.com")[0] == 0
    before = assay.export()
    invalid = FILE.replace("/quote", "/new").replace("rateLimit: 60", "rateLimit: 0")
    assay.file.write_text(invalid, "utf-8")
    status, _, error = assay.apply("--prune")
    assert status == 1
    assert 'line 8: "POST /items/{id}": rateLimit: ' in error
    assert assay.export() == before

    assay.file.write_text(FILE.partition("  - path: /items")[0], "utf-8")
    assert assay.apply()[1] == "nothing to do\n"
    assert assay.apply("--prune")[1] == "delete  POST /items/{id}\napplied 1 changes\n"
    assert "/items/{id}" not in assay.export()
    assert assay.export("b@example.com") == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the file is empty"),
        ("wrappers: {", "line 1: this is not YAML"),
        ("\xff", "needs `wrappers`|must be a mapping"),
        ("wrapers: []", "line 1: unknown key 'wrapers'; did you mean wrappers"),
        ("wrappers:\n- path: /a\n  pathh: /b", "line 3: unknown key 'pathh'; did you mean path"),
        ("wrappers:\n- path: /a\n  path: /b", "line 3: path is given twice"),
        ("wrappers:\n- path: /a\n  upstreamAuthSecret: x", "line 3: unknown key"),
        ("a: &a [x]\nwrappers: *a", "line 1: anchors and aliases"),
        ("[" * 100_000, "line 1: is nested more than 8 deep"),
        ("wrappers: !!python/object:os.system []\n", "line 1: tags are not accepted"),
        ("wrappers:\n- {path: /a, pricePerCall: .inf, targetUrl: x}", "line 2: has a number"),
        ("wrappers:\n- {path: /a, pricePerCall: 0, targetUrl: 2020-01-01}", "line 2: must be text"),
        ("wrappers:\n- {path: /a, targetUrl: x}", "line 2: pricePerCall: "),
        ("wrappers:\n- {path: /a, pricePerCall: 0}", "line 2: targetUrl: is needed"),
        ("x" * (FILE_BYTES_MAX + 1), "more than"),
        (
            """wrappers: [{path: '/a/{b}', pricePerCall: 0, targetUrl: x},
            {path: '/a/{c}', pricePerCall: 0, targetUrl: x}]""",
            "line 2: line 1 has this method and path",
        ),
    ],
)
def test_a_file_that_declares_no_wrappers_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(BadWrapperFile, match=message):
        parse(text.encode(), lambda _: "")
