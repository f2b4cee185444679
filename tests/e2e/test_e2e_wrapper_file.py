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


@pytest.mark.slow
def test_the_file_decides_and_a_second_run_has_nothing_to_do(tmp_path: Path) -> None:
    environment = {"ASSAY_DATA_DIR": str(tmp_path / "data")}
    file, key = tmp_path / "wrappers.yaml", tmp_path / "key.txt"

    def assay(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        done = command(*arguments, environment=environment, stdin=stdin)
        assert "Traceback" not in done.stderr
        assert "hush" not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stderr

    def apply(*options: str, email: str = "a@example.com") -> tuple[int, str, str]:
        return assay("wrappers", "apply", email, str(file), *options)

    for email in ("a@example.com", "b@example.com"):
        create = ("accounts", "create", email, "--name", "A")
        assert assay(*create, stdin="a long password\n")[0] == 0
    file.write_text(FILE, "utf-8")
    key.write_text("hush-1\n", "utf-8")
    status, out, error = apply("--dry-run")
    assert (status, out.count("create")) == (2, 2), error
    assert "wrappers: []" in assay("wrappers", "export", "a@example.com")[1]
    assert apply()[0] == 0
    assert apply(email="b@example.com")[0] == 0
    assert apply() == (0, "nothing to do\n", "")

    _, exported, _ = assay("wrappers", "export", "a@example.com")
    file.write_text(exported, "utf-8")
    assert apply("--dry-run", "--prune") == (0, "nothing to do\n", "")

    key.write_text("hush-2\n", "utf-8")
    file.write_text(FILE.replace("rateLimit: 60", "rateLimit: 90"), "utf-8")
    status, out, _ = apply()
    assert status == 0
    assert "    rateLimit: 60 -> 90\n" in out
    assert "    upstreamAuthSecret: changed\n" in out

    invalid = FILE.replace("/quote", "/new").replace("rateLimit: 60", "rateLimit: 0")
    file.write_text(invalid, "utf-8")
    status, _, error = apply("--prune")
    assert status == 1
    assert 'line 8: "POST /items/{id}": rateLimit: ' in error

    file.write_text(FILE.partition("  - path: /items")[0], "utf-8")
    assert apply()[1] == "nothing to do\n"
    assert apply("--prune")[1] == "delete  POST /items/{id}\napplied 1 changes\n"
    assert "/items/{id}" not in assay("wrappers", "export", "a@example.com")[1]
    assert "/items/{id}" in assay("wrappers", "export", "b@example.com")[1]


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
