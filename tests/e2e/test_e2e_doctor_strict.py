"""`assay doctor --strict`: the unsafe settings of docs/doctor.md, against the real command."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from eth_account import Account

from tests.support.commands import command
from tests.support.databases import migrated_sqlite
from tests.support.solana.clusters import keypair
from tests.support.solana.indexer import indexer
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
KEY = "0x" + "4c0883a69102937d6231471b5dbb6204fe512961708279f3e8f5cd1f6ab6a9c8"
RANDOM = (
    "138c3884a68b0eeac7a4f2c5bbdea65d47baf37bdaaa60e0bad3e9abfb17fffe",
    "dec81a0adba077e7680e63ea2e08763c01de7127cce28e1b3bdbbd7f8bf90367",
)


@pytest.fixture(scope="module")
def answering() -> Iterator[dict[str, str]]:
    """Settings of a chain that answers on this machine, so that only settings can be at fault."""
    registry = Registry()
    with node(registry) as rpc, indexer(registry) as index:
        rpc.fund(keypair("writer").pubkey())
        yield {
            "ASSAY_DEFAULT_CHAIN": "solana",
            "ASSAY_SOLANA_RPC_URL": rpc.url,
            "ASSAY_SOLANA_INDEXER_URL": index.url,
        }


class Installation:
    """The recommended configuration of docs/operate.md in a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.data_dir = folder / "data"
        self.data_dir.mkdir(mode=0o700)
        migrated_sqlite(self.data_dir / "assay.db")
        self.config = folder / "assay.toml"
        self.config.touch(mode=0o600)
        self.config.write_text(recommended(), "utf-8")
        plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
        self.environment = plain | environment
        self.environment |= {
            "PYTHONPATH": str(ROOT / "src"),
            "ASSAY_CONFIG": str(self.config),
            "ASSAY_DATA_DIR": str(self.data_dir),
        }

    def add(self, **values: str) -> None:
        """More lines for the file of settings; a name that is there already is replaced."""
        kept = [
            line
            for line in self.config.read_text("utf-8").splitlines()
            if line.split(" = ")[0] not in values
        ]
        more = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        self.config.write_text("\n".join([*kept, *more]) + "\n", "utf-8")

    def drop(self, name: str) -> None:
        lines = self.config.read_text("utf-8").splitlines()
        self.config.write_text("\n".join(x for x in lines if not x.startswith(name)), "utf-8")

    def doctor(self, *flags: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return command("doctor", *flags, environment=self.environment | settings)

    def doctor_anew(self, *flags: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """The same by a new interpreter."""
        return subprocess.run(
            [sys.executable, "-m", "assay", "doctor", *flags],
            env=self.environment | settings,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def doctor_with(self, files: int) -> subprocess.CompletedProcess[str]:
        """The same where no more files may be open."""
        environment = self.environment
        return command("doctor", "--strict", environment=environment, files=(files, files))


@pytest.fixture
def installation(tmp_path: Path, answering: dict[str, str]) -> Installation:
    return Installation(tmp_path, answering)


def recommended() -> str:
    page = (ROOT / "docs/operate.md").read_text("utf-8")
    found = re.search(r"## Recommended configuration.*?```toml\n(.*?)```", page, re.DOTALL)
    assert found
    assert tomllib.loads(found[1])
    return found[1]


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What was found by name; each with its why and its do."""
    lines = done.stdout.splitlines()
    found: dict[str, str] = {}
    for at, line in enumerate(lines):
        parts = line.split(maxsplit=2)
        if parts and parts[0] == "unsafe":
            assert lines[at + 1].strip().startswith("why: "), done.stdout
            assert lines[at + 2].strip().startswith("do: "), done.stdout
            found[parts[1]] = found.get(parts[1], "") + parts[2]
    return found


def only(done: subprocess.CompletedProcess[str], name: str, *mentions: str) -> None:
    """Exactly this finding, which names the value at fault, and status 1."""
    found = findings(done)
    assert list(found) == [name], done.stdout + done.stderr
    assert all(text in found[name] for text in mentions), found
    assert done.returncode == 1


def test_nothing_is_reported_on_the_recommended_configuration(installation: Installation) -> None:
    done = installation.doctor_anew("--strict")
    assert findings(done) == {}, done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_finding_is_listed_on_the_page_and_no_other() -> None:
    page = (ROOT / "docs/doctor.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (\d+) \| `([a-z-]+)` \|", page)
    code = "from assay.cli.unsafe_settings import RULES; print(*[r.name for r in RULES])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [number for number, _ in rows] == [str(n) for n in range(1, len(rows) + 1)]
    assert len(rows) >= 20
    assert [name for _, name in rows] == done.stdout.split()


def test_1_open_bind_is_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_HOST="0.0.0.0")
    only(done, "open-bind", "ASSAY_HOST", "0.0.0.0")


def test_2_trusted_proxies_of_everything_are_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_TRUSTED_PROXIES="127.0.0.1,0.0.0.0/0")
    only(done, "trusted-proxies", "ASSAY_TRUSTED_PROXIES", "0.0.0.0/0")


def test_3_a_public_url_without_a_trusted_proxy_is_found(installation: Installation) -> None:
    installation.drop("trusted_proxies")
    only(installation.doctor("--strict"), "proxy-not-trusted", "ASSAY_TRUSTED_PROXIES")


def test_4_a_public_url_without_tls_is_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_PUBLIC_URL="http://assay.example.com")
    only(done, "public-url-plain", "http://assay.example.com")


def test_5_a_missing_public_url_behind_a_proxy_is_found(installation: Installation) -> None:
    installation.drop("public_url")
    only(installation.doctor("--strict"), "public-url-missing", "ASSAY_PUBLIC_URL")


def test_6_asserted_identity_is_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_IDENTITY_PROOF="asserted")
    only(done, "identity-asserted", "ASSAY_IDENTITY_PROOF")


def test_7_a_weak_secret_is_found_and_not_shown(installation: Installation) -> None:
    installation.add(session_secret="changemechangemechangemechangeme")
    done = installation.doctor_anew("--strict")
    only(done, "weak-secret", "ASSAY_SESSION_SECRET")
    assert "changeme" not in done.stdout + done.stderr


def test_8_equal_secrets_are_found_and_not_shown(installation: Installation) -> None:
    installation.add(jwt_secret=RANDOM[0], payment_secret=RANDOM[0], signing_secret=RANDOM[1])
    done = installation.doctor("--strict")
    only(done, "equal-secrets", "ASSAY_JWT_SECRET", "ASSAY_PAYMENT_SECRET")
    assert RANDOM[0] not in done.stdout + done.stderr


def test_9_open_sign_up_with_a_funded_key_is_found(installation: Installation) -> None:
    installation.drop("x402_facilitator_url")
    installation.add(x402_private_key=KEY, sign_up="open")
    only(installation.doctor("--strict"), "open-sign-up", "ASSAY_SIGN_UP")


@pytest.mark.parametrize("mode", ["invite", "closed"])
def test_9_sign_up_that_is_not_open_is_no_finding(installation: Installation, mode: str) -> None:
    installation.drop("x402_facilitator_url")
    installation.add(x402_private_key=KEY, sign_up=mode)
    done = installation.doctor("--strict")
    assert findings(done) == {}, done.stdout


def test_10_evaluations_by_strangers_that_cost_fees_are_found(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "solana.json"
    file.touch(mode=0o600)
    file.write_text(keypair("writer").to_json(), "utf-8")
    installation.add(solana_keypair=str(file))
    found = findings(installation.doctor("--strict"))
    assert "stranger-write-back" in found
    assert "trigger-sandbox" in found["stranger-write-back"]
    closed = installation.doctor("--strict", ASSAY_OPEN_ENDPOINTS="wallet,snapshot")
    assert "stranger-write-back" not in findings(closed)


def test_11_private_upstreams_are_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_ALLOW_PRIVATE_UPSTREAMS="1")
    only(done, "private-upstreams", "ASSAY_ALLOW_PRIVATE_UPSTREAMS")


def test_12_an_open_data_directory_is_found(installation: Installation) -> None:
    installation.data_dir.chmod(0o777)
    done = installation.doctor("--strict")
    only(done, "data-directory", str(installation.data_dir), "0777")


def test_13_settings_that_others_can_read_are_found(installation: Installation) -> None:
    installation.add(jwt_secret=RANDOM[0])
    installation.config.chmod(0o644)
    only(installation.doctor("--strict"), "file-mode", str(installation.config), "0644")


def test_13_a_keypair_that_others_can_read_is_found(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "solana.json"
    file.write_text(keypair("writer").to_json(), "utf-8")
    file.chmod(0o640)
    installation.add(solana_keypair=str(file))
    found = findings(installation.doctor("--strict"))
    assert str(file) in found["file-mode"]


def test_14_keys_in_the_environment_are_found_and_not_shown(installation: Installation) -> None:
    written = keypair("writer").to_json()
    done = installation.doctor("--strict", ASSAY_X402_PRIVATE_KEY=KEY, ASSAY_SOLANA_KEYPAIR=written)
    found = findings(done)
    assert "ASSAY_X402_PRIVATE_KEY" in found["key-in-environment"]
    assert "ASSAY_SOLANA_KEYPAIR" in found["key-in-environment"]
    assert KEY not in done.stdout + done.stderr
    assert written[:20] not in done.stdout + done.stderr


def test_15_a_database_elsewhere_without_tls_is_found(installation: Installation) -> None:
    installation.add(database_url="postgresql://assay:hidden@db.invalid/assay?sslmode=require")
    done = installation.doctor("--strict")
    only(done, "database-plain", "ASSAY_DATABASE_URL")
    assert "hidden" not in done.stdout + done.stderr


def test_16_a_valkey_elsewhere_without_tls_is_found(installation: Installation) -> None:
    installation.add(state_url="valkey://:hidden@cache.invalid:6379/0")
    done = installation.doctor("--strict")
    only(done, "state-plain", "ASSAY_STATE_URL", "TLS")
    assert "hidden" not in done.stdout + done.stderr


def test_17_plain_http_to_a_service_that_decides_is_found(installation: Installation) -> None:
    urls = ["https://a.invalid", "http://node.invalid/hidden"]
    done = installation.doctor("--strict", ASSAY_PAYMENT_RPC=json.dumps({"eip155:8453": urls}))
    only(done, "plain-http-service", "ASSAY_PAYMENT_RPC", "http://node.invalid")
    assert "hidden" not in done.stdout


def test_18_a_payout_address_that_nobody_owns_is_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_PAYOUT_ADDRESS="0x" + "0" * 40)
    only(done, "payout-address", "ASSAY_PAYOUT_ADDRESS")


def test_18_revenue_on_the_key_that_is_online_is_found(installation: Installation) -> None:
    installation.drop("x402_facilitator_url")
    installation.add(x402_private_key=KEY, payout_address=Account.from_key(KEY).address)
    found = findings(installation.doctor("--strict"))
    assert "ASSAY_X402_PRIVATE_KEY" in found["payout-address"]


def test_19_limits_that_limit_nobody_are_found(installation: Installation) -> None:
    done = installation.doctor("--strict", ASSAY_ANONYMOUS_PER_MINUTE="1000000")
    only(done, "limits-lifted", "ASSAY_ANONYMOUS_PER_MINUTE", "1000000")


def test_without_strict_the_same_is_a_warning_and_not_a_failure(
    installation: Installation,
) -> None:
    done = installation.doctor(ASSAY_IDENTITY_PROOF="asserted")
    assert re.search(r"(?m)^warns\s+identity-asserted\s", done.stdout), done.stdout
    assert "why: " in done.stdout
    assert "do: " in done.stdout
    assert done.returncode == 0


def test_plain_doctor_warns_of_open_sign_up_with_a_funded_key(installation: Installation) -> None:
    installation.drop("x402_facilitator_url")
    installation.add(x402_private_key=KEY, sign_up="open")
    assert re.search(r"(?m)^warns\s+open-sign-up\s", installation.doctor().stdout)


def test_values_in_brackets_are_shown_as_they_are(installation: Installation) -> None:
    """The terminal's own markup is in brackets."""
    done = installation.doctor("--strict", ASSAY_PUBLIC_URL="http://[2001:db8::1]:80")
    only(done, "public-url-plain", "http://[2001:db8::1]:80")


def note(installation: Installation, at: datetime, **changed: object) -> None:
    told = {"address": "203.0.113.7", "held": 1300, "of": 2000, "at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    file = installation.data_dir / "connections.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps({**told, **changed}), "utf-8")


def test_an_address_that_held_most_connections_is_named_with_the_setting(
    installation: Installation,
) -> None:
    note(installation, datetime.now(UTC) - timedelta(hours=2))  # noqa: TID251 - doctor's own clock
    done = installation.doctor("--strict")
    found = findings(done)
    assert "203.0.113.7" in found["connections"]
    assert "1300 of 2000" in found["connections"]
    assert "ASSAY_TRUSTED_PROXIES" in done.stdout
    assert done.returncode == 1
    assert "warns  connections" in installation.doctor().stdout


def test_an_old_absent_or_malformed_note_of_connections_says_nothing(
    installation: Installation,
) -> None:
    file = installation.data_dir / "connections.json"
    note(installation, datetime.now(UTC) - timedelta(hours=25))  # noqa: TID251
    assert findings(installation.doctor("--strict")) == {}
    file.write_text("[]", "utf-8")
    assert findings(installation.doctor("--strict")) == {}
    file.unlink()
    assert installation.doctor("--strict").returncode == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASSAY_JWT_SECRET", "hunter2hunter2"),
        ("ASSAY_X402_PRIVATE_KEY", "hunter2hunter2"),
        ("ASSAY_SMTP_URL", "smtp://assay:hunter2/hunter3@127.0.0.1:587"),
    ],
)
def test_a_value_that_the_start_refuses_is_named_and_not_shown(
    installation: Installation, name: str, value: str
) -> None:
    done = installation.doctor("--strict", **{name: value})
    said = done.stdout + done.stderr
    assert done.returncode in {1, 78}, said
    assert name in said
    assert "Traceback" not in said
    assert "hunter" not in said


def test_doctor_says_who_settles_when_both_are_set(installation: Installation) -> None:
    installation.add(x402_private_key=KEY)
    done = installation.doctor("--strict")
    assert "settled by the facilitator https://facilitator.example.com" in done.stdout
    assert "ASSAY_X402_PRIVATE_KEY is not used" in done.stdout
    assert done.returncode == 0, done.stdout


def test_few_open_files_are_told_and_too_few_are_unsafe(installation: Installation) -> None:
    done = installation.doctor_with(1024)
    assert "1024 are room for 224 connections, not 2000" in done.stdout
    assert findings(done) == {}, done.stdout
    assert done.returncode == 0
    only(installation.doctor_with(700), "open-files", "700", "62 connections")
