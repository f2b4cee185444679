"""Every case of `unsafe_cases` is found, and none of its near misses is reported."""

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template

import pytest

from assay.app import networks_from
from assay.cli.doctor import doctor
from assay.cli.unsafe_settings import findings
from assay.settings import Settings, SettingsError, load
from tests.settings.unit.unsafe_cases import SAFE, SOL, UNSAFE, VALUES

ROOT = Path(__file__).parents[3]
DRAWN = "5b0c6a2f94e1d87730af2c4be6195d8f1a7c03e25d9b48f6c1e0a7d3942f68bb"


class Installation:
    """The recommended configuration of docs/operate.md in a folder of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        self.data = folder / "service" / "data"
        self.data.mkdir(mode=0o700, parents=True)
        self.key = folder / "key" / "solana.json"
        self.key.parent.mkdir(mode=0o755)
        self.write(self.key, SOL)
        self.config = folder / "etc" / "assay.toml"
        self.config.parent.mkdir(mode=0o755)
        self.write(self.config, "")
        self.secrets = {"jwt_secret": DRAWN, "jwt_secret_next": DRAWN[::-1]}
        self.write(self.data / "secrets.json", json.dumps(self.secrets))
        page = (ROOT / "docs/operate.md").read_text("utf-8")
        found = re.search(r"## Recommended configuration.*?```toml\n(.*?)```", page, re.DOTALL)
        assert found
        self.lines = dict(line.split(" = ", 1) for line in found[1].splitlines() if line)
        patch.setenv("ASSAY_CONFIG", str(self.config))
        patch.setenv("ASSAY_DATA_DIR", str(self.data))

    @staticmethod
    def write(path: Path, text: str, mode: int = 0o600) -> None:
        path.write_text(text, "utf-8")
        path.chmod(mode)

    def configure(self, case: str) -> None:
        """Apply a line of `unsafe_cases`."""
        values = VALUES | {"KEY_FILE": str(self.key), "DRAWN_JWT": DRAWN}
        for _ in range(2):  # values hold values
            case = Template(case).safe_substitute(values)
        for word in _words(case):
            name, _, value = word.partition("=")
            if name.startswith("!"):
                self.lines.pop(name[1:], None)
            elif name.isupper():
                self.patch.setenv(name, value)
            else:
                self.lines[name] = json.dumps(value)
        self.save()

    def save(self) -> None:
        self.config.write_text(
            "".join(f"{name} = {value}\n" for name, value in self.lines.items()), "utf-8"
        )

    def reported(self) -> Mapping[str, str]:
        """What is found, by name; what the start refuses stands under `refused`."""
        try:
            settings = load()
            networks_from(settings)
        except (SettingsError, ValueError) as error:
            return {"refused": str(error)}
        return _findings(settings)


def _findings(settings: Settings) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for finding in findings(settings):
        found[finding.name] = f"{found.get(finding.name, '')}{finding.what}\n"
    return found


def _words(case: str) -> list[str]:
    """JSON without a quote of the shell around it keeps its own."""
    lexer = shlex.shlex(case, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(lexer)


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    return Installation(tmp_path, monkeypatch)


REFUSED = "refused"
UNSAFE_CASES = [
    (name, case) for name, cases in UNSAFE.values() for case in cases.split("\n") if case
]
SAFE_CASES = [case for cases in SAFE.values() for case in cases.split("\n") if case]


@pytest.mark.parametrize(("name", "case"), UNSAFE_CASES)
def test_an_unsafe_configuration_is_found(installation: Installation, name: str, case: str) -> None:
    installation.configure(case)
    reported = installation.reported()
    if REFUSED in reported:
        settings = re.findall(r"ASSAY_[A-Z0-9_]+", case)
        assert any(setting in reported[REFUSED] for setting in settings), reported
    else:
        assert name in reported, reported


@pytest.mark.parametrize("case", SAFE_CASES)
def test_a_safe_configuration_that_looks_unsafe_is_not_reported(
    installation: Installation, case: str
) -> None:
    installation.configure(case)
    assert installation.reported() == {}


FilesOf = Callable[[Installation], None]


def _mode(name: str, mode: int) -> FilesOf:
    """Give a file or folder of the installation this mode; a new file is made."""

    def change(installation: Installation) -> None:
        path = installation.folder / name
        if not path.exists():
            path.write_bytes(b"x")
        path.chmod(mode)

    return change


def _secret_in_file(line: str, mode: int) -> FilesOf:
    def change(installation: Installation) -> None:
        installation.configure(line)
        installation.config.chmod(mode)

    return change


def _blocks(installation: Installation) -> None:
    blocks = installation.data / "blocks"
    blocks.mkdir()
    blocks.chmod(0o755)
    installation.write(blocks / "one", "x", 0o644)


def _symlink_of_the_key(installation: Installation) -> None:
    link = installation.folder / "link.json"
    link.symlink_to(installation.key)
    installation.key.chmod(0o644)
    installation.patch.setenv("ASSAY_SOLANA_KEYPAIR", str(link))


def _data_dir(path: str) -> FilesOf:
    return lambda installation: installation.patch.setenv("ASSAY_DATA_DIR", path)


def _all(*changes: FilesOf) -> FilesOf:
    def change(installation: Installation) -> None:
        for one in changes:
            one(installation)

    return change


def _another_owner(name: str) -> FilesOf:
    """The process has another user than the file, as it seems to the code that asks."""

    def change(installation: Installation) -> None:
        path = installation.folder / name
        if os.geteuid() == 0:
            os.chown(path, 54321, -1)
        installation.patch.setattr(os, "geteuid", lambda: 12345)

    return change


KEY = "key/solana.json"
UNSAFE_FILES: dict[str, tuple[str, FilesOf]] = {
    "25 key 0644": ("file-mode", _mode(KEY, 0o644)),
    "25 key 0640": ("file-mode", _mode(KEY, 0o640)),
    "25 key 0604": ("file-mode", _mode(KEY, 0o604)),
    "25 key of another user": ("file-mode", _another_owner(KEY)),
    "25 target of a link to the key 0644": ("file-mode", _symlink_of_the_key),
    "25 key in a folder 0777": ("file-mode", _mode("key", 0o777)),
    "25 secrets.json 0644": ("data-directory", _mode("service/data/secrets.json", 0o644)),
    "25 secrets.json 0640": ("data-directory", _mode("service/data/secrets.json", 0o640)),
    "25 secrets.json.bak 0644": ("data-directory", _mode("service/data/secrets.json.bak", 0o644)),
    "25 secrets.json~ 0644": ("data-directory", _mode("service/data/secrets.json~", 0o644)),
    "25 settings with a secret 0644": ("file-mode", _secret_in_file("jwt_secret=$A", 0o644)),
    "25 settings with a key 0644": ("file-mode", _secret_in_file("x402_private_key=$K1", 0o644)),
    "25 settings with a database password 0644": (
        "file-mode",
        _secret_in_file("database_url=postgresql://u:Zq7-vT2k_mR9@127.0.0.1/assay", 0o644),
    ),
    "25 settings with a mail password 0644": (
        "file-mode",
        _secret_in_file("smtp_url=smtps://u:Zq7-vT2k_mR9@mail.example:465", 0o644),
    ),
    "25 settings 0666": ("file-mode", _mode("etc/assay.toml", 0o666)),
    "25 settings in a folder 0777": ("file-mode", _mode("etc", 0o777)),
    "26 data 0777": ("data-directory", _mode("service/data", 0o777)),
    "26 data 0775": ("data-directory", _mode("service/data", 0o775)),
    "26 assay.db 0644": ("data-directory", _mode("service/data/assay.db", 0o644)),
    "26 assay.db-wal 0644": ("data-directory", _mode("service/data/assay.db-wal", 0o644)),
    "26 blocks 0755": ("data-directory", _blocks),
    "26 data 0755 and assay.db 0644": (
        "data-directory",
        _all(_mode("service/data", 0o755), _mode("service/data/assay.db", 0o644)),
    ),
    "26 parent 0777": ("data-directory", _mode("service", 0o777)),
    "26 data of another user": ("data-directory", _another_owner("service/data")),
    "26 /tmp/assay": ("data-directory", _data_dir("/tmp/assay")),
    "26 /var/tmp/assay": ("data-directory", _data_dir("/var/tmp/assay")),
    "26 /dev/shm/assay": ("data-directory", _data_dir("/dev/shm/assay")),
}

SAFE_FILES: dict[str, FilesOf] = {
    "25 key 0600": _mode(KEY, 0o600),
    "25 key 0400": _mode(KEY, 0o400),
    "25 settings without a secret 0644": _mode("etc/assay.toml", 0o644),
    "25 public key beside the settings 0644": _mode("etc/public.pem", 0o644),
    "26 data 0700": _mode("service/data", 0o700),
    "26 data 0755, its files 0600": _mode("service/data", 0o755),
    "26 parent 1777": _mode("service", 0o1777),
    "26 /srv/assay": _data_dir("/srv/assay"),
}


def _with_key(installation: Installation) -> None:
    """A key that nobody but its owner makes use of: no other finding is right."""
    installation.configure(f"solana_keypair={installation.key} ASSAY_OPEN_ENDPOINTS=wallet")


@pytest.mark.parametrize("title", UNSAFE_FILES)
def test_files_that_others_read_or_replace_are_found(
    installation: Installation, title: str
) -> None:
    name, change = UNSAFE_FILES[title]
    _with_key(installation)
    change(installation)
    assert name in installation.reported()


@pytest.mark.parametrize("title", SAFE_FILES)
def test_files_of_their_owner_alone_are_not_reported(
    installation: Installation, title: str
) -> None:
    _with_key(installation)
    SAFE_FILES[title](installation)
    assert installation.reported() == {}


EAS = {"chain": "base", "eas": "0x" + "21" * 20, "schema": "0x" + "ab" * 32, "attesters": []}
REFUSED_VALUES = {
    "ASSAY_JWT_SECRET": "hunter2hunter2",
    "ASSAY_SESSION_SECRET": "hunter2hunter2hunter2hunter2hunter2,",
    "ASSAY_OPEN_ENDPOINTS": "wallet,proxy",
    "ASSAY_CORS_ORIGINS": "null",
    "ASSAY_WRAP_URL": "https://admin:hunter2hunter2@assay.example.com",
    "ASSAY_PUBLIC_URL": "https://admin:hunter2\u2100@assay.example.com",
    "ASSAY_GUESSES_PER_MINUTE": "0",
    "ASSAY_CHAINS": '{"base":{"rpc_urls":["ws://u:hunter2@node.example:8546"]}}',
    "ASSAY_DEFAULT_CHAIN": "atlantis",
    "ASSAY_PAYMENT_RPC": '{"eip155:1":["https://u:hunter2@node.example"]}',
    "ASSAY_TIERS": '[[1,"AAA","GREEN","prod"]]',
    "ASSAY_WEIGHTS": '{"humour":1}',
    "ASSAY_ATTESTATION_SOURCES": json.dumps([EAS]),
    "ASSAY_CONTRACT_WALLET_CHAINS": "atlantis",
    "ASSAY_SELF_REGISTRY": "atlantis:0x00",
    "ASSAY_X402_PRIVATE_KEY": "hunter2hunter2",
    "ASSAY_SOLANA_KEYPAIR": "[7,7,7]",
    "ASSAY_DATABASE_URL": "mysql://assay:hunter2hunter2@127.0.0.1/assay",
    "ASSAY_STATE_URL": "redis://:hunter2hunter2@127.0.0.1/0",
    "ASSAY_SMTP_URL": "smtp://assay:hunter2/hunter3@127.0.0.1:587",
}


@pytest.mark.parametrize("name", REFUSED_VALUES)
def test_what_the_start_refuses_is_named_and_not_shown(
    installation: Installation, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Every kind of value; the command itself is tested end to end."""
    installation.save()
    installation.patch.setenv("ASSAY_SMTP_FROM", "assay@example.com")
    installation.patch.setenv(name, REFUSED_VALUES[name])
    try:
        status = doctor(strict=True)
    except SystemExit as end:
        status = end.code
    told = capsys.readouterr()
    assert status in {1, 78}
    assert name in told.err + re.sub(r"(?m)^(unsafe|  ).*\n", "", told.out)
    assert "hunter" not in told.out + told.err
