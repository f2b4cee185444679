"""The command line as a newcomer uses it: real processes, real output."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.support.assay import served
from tests.support.commands import command
from tests.support.solana.clusters import keypair
from tests.support.solana.indexer import indexer
from tests.support.solana.loopback import unavailable
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def environment(data_dir: Path, **settings: str) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    return plain | {"PYTHONPATH": str(ROOT / "src"), "ASSAY_DATA_DIR": str(data_dir)} | settings


def assay(
    *arguments: str, data_dir: Path, stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    return command(*arguments, environment=environment(data_dir, **settings), stdin=stdin)


def assay_anew(
    *arguments: str, data_dir: Path, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """The same by a new interpreter."""
    return subprocess.run(
        [sys.executable, "-m", "assay", *arguments],
        env=environment(data_dir),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


def test_the_demo_prints_its_table_as_json_and_ends_everything(tmp_path: Path) -> None:
    done = assay_anew("demo", "--once", "--json", "--port", "0", data_dir=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    keys = {"agentId", "name", "score", "tier", "riskLevel", "route", "allow", "reasons"}
    keys |= {"rung", "rungName"}
    climbed = rows["Steady"].pop("simulatedClimb")
    assert all(row.keys() == keys for row in rows.values())
    assert {name for name, row in rows.items() if row["allow"]} == {"Steady"}
    assert {row["rung"] for row in rows.values() if not row["allow"]} == {0}
    assert rows["Hostile"]["score"] < 35
    assert [day["rung"] for day in climbed] == [1, 2, 3]
    assert [day["simulated"] for day in climbed] == [False, True, True]
    assert climbed[0]["score"] == rows["Steady"]["score"] < climbed[1]["score"]
    assert climbed[1]["score"] < climbed[2]["score"] <= climbed[2]["ceiling"] == 89
    assert len(rows) >= 3


def test_ctrl_c_ends_the_demo_and_what_it_started(tmp_path: Path) -> None:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "demo", "--port", "0"],
        env=plain | {"PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while "x-agent-session: $SESSION" not in said:
        line = process.stdout.readline()
        assert line, f"the demo ended early: {said}"
        said += line
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 4
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stdout.close()
    assert [c for c in children if Path(f"/proc/{c}").exists()] == []
    assert list(tmp_path.iterdir()) == []


def test_accounts_are_made_listed_and_changed(tmp_path: Path) -> None:
    made = assay_anew(
        *("accounts", "create", "root@example.com", "--name", "Root", "--admin"),
        data_dir=tmp_path,
        stdin="a long enough password\n",
    )
    assert made.returncode == 0, made.stderr
    assert "svc_op_" in made.stdout
    assert (
        assay("accounts", "set-plan", "root@example.com", "pro", data_dir=tmp_path).returncode == 0
    )
    listed = json.loads(assay("accounts", "list", "--json", data_dir=tmp_path).stdout)
    assert [(o["email"], o["role"], o["plan"]) for o in listed] == [
        ("root@example.com", "admin", "pro")
    ]
    changed = assay("accounts", "set-role", "root@example.com", "operator", data_dir=tmp_path)
    assert changed.stdout == "root@example.com is now operator\n"


def test_what_cannot_be_done_is_one_sentence_and_a_status(tmp_path: Path) -> None:
    create = ("accounts", "create", "root@example.com", "--name", "Root")
    short = assay(*create, data_dir=tmp_path, stdin="short\n")
    assert (short.returncode, short.stderr.count("\n")) == (1, 1)
    assert "12 to 256" in short.stderr
    nobody = assay("accounts", "set-plan", "nobody@example.com", "pro", data_dir=tmp_path)
    assert nobody.returncode == 1
    wrong = assay("accounts", "list", data_dir=tmp_path, ASSAY_PORT="many")
    assert (wrong.returncode, "ASSAY_PORT" in wrong.stderr) == (78, True)
    table = assay("migrate", data_dir=tmp_path, ASSAY_TIERS='[[50, "A", "GREEN", "prod"]]')
    assert (table.returncode, "tier table" in table.stderr) == (78, True)
    chain = assay("migrate", data_dir=tmp_path, ASSAY_DEFAULT_CHAIN="atlantis")
    assert (chain.returncode, "atlantis" in chain.stderr) == (78, True)
    open_to_all = tmp_path / "secrets.json"
    open_to_all.write_text("{}")
    open_to_all.chmod(0o644)
    exposed = assay("migrate", data_dir=tmp_path)
    assert (exposed.returncode, "chmod 600" in exposed.stderr) == (78, True)


def test_a_taken_port_is_said_before_anything_is_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = assay("serve", "--port", port, data_dir=tmp_path / "data")
    assert done.returncode == 78
    assert "in use" in done.stderr
    assert not (tmp_path / "data").exists()


def test_signing_a_challenge_gives_the_body_verify_takes(tmp_path: Path) -> None:
    account = Account.create()
    key_file = tmp_path / "owner.key"
    key_file.write_text(account.key.hex() + "\n")
    done = assay(
        *("sign", "--key-file", str(key_file)),
        data_dir=tmp_path,
        stdin=json.dumps({"challenge": "please sign \u00e9"}),
    )
    body = json.loads(done.stdout)
    said = encode_defunct(text="please sign \u00e9")
    assert Account.recover_message(said, signature=body["signature"]) == account.address
    assert body["agentAddress"] == account.address.lower()
    wrong = assay("sign", "--key-file", str(key_file), data_dir=tmp_path, stdin="[]")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1)


def test_doctor_says_what_works_and_how_to_fix_what_does_not(tmp_path: Path) -> None:
    override = override_of_a_chain_nobody_asks()
    done = assay(
        "doctor",
        data_dir=tmp_path,
        ASSAY_CHAINS=json.dumps({"local": override}),
        ASSAY_DEFAULT_CHAIN="local",
    )
    assert done.returncode == 1
    assert "works  database (sqlite)" in done.stdout
    alone = "one only for tempo:4217, tempo:42431: its word on a payment is final"
    assert f"works  payment endpoints  {alone}" in done.stdout
    assert "fails  chain local" in done.stdout
    assert "fix: reach one of http://127.0.0.1:9" in done.stdout


def test_doctor_looks_at_what_is_set_for_solana(tmp_path: Path) -> None:
    registry, writer = Registry(), keypair("writer")
    with node(registry) as rpc, indexer(registry) as index:
        settings = {
            "ASSAY_CHAINS": json.dumps({"local": override_of_a_chain_nobody_asks()}),
            "ASSAY_DEFAULT_CHAIN": "local",
            "ASSAY_SOLANA_RPC_URL": rpc.url,
            "ASSAY_SOLANA_INDEXER_URL": index.url,
            "ASSAY_SOLANA_KEYPAIR": writer.to_json(),
        }
        poor = assay("doctor", data_dir=tmp_path, **settings)
        assert "works  solana node (mainnet-beta)" in poor.stdout
        assert "works  solana indexer  127.0.0.1" in poor.stdout
        assert "fails  solana wallet" in poor.stdout
        assert f"fix: send the wallet {writer.pubkey()} at least 0.001 SOL" in poor.stdout
        rpc.fund(writer.pubkey())
        index.faults.on(unavailable())
        elsewhere = assay("doctor", data_dir=tmp_path, ASSAY_SOLANA_CLUSTER="devnet", **settings)
        assert "fails  solana node (devnet)" in elsewhere.stdout
        assert "fix: set ASSAY_SOLANA_RPC_URL to a node of devnet" in elsewhere.stdout
        assert "fails  solana indexer" in elsewhere.stdout
        rich = assay("doctor", data_dir=tmp_path, **settings)
        assert "works  solana wallet  holds 1000000000 lamports" in rich.stdout
    assert str(list(bytes(writer)))[1:20] not in poor.stdout + elsewhere.stdout + rich.stdout


def test_doctor_looks_at_solana_where_that_is_the_default_chain(tmp_path: Path) -> None:
    with node(Registry()) as rpc, indexer(Registry()) as index:
        settings = {
            "ASSAY_DEFAULT_CHAIN": "solana",
            "ASSAY_SOLANA_RPC_URL": rpc.url + "/?api-key=hidden",
            "ASSAY_SOLANA_INDEXER_URL": index.url,
        }
        works = assay("doctor", data_dir=tmp_path, **settings)
        assert works.returncode == 0, works.stdout + works.stderr
        assert "works  solana node (mainnet-beta)" in works.stdout
        rpc.faults.on(unavailable())
        fails = assay("doctor", data_dir=tmp_path, **settings)
        assert fails.returncode == 1
        assert "fails  solana node (mainnet-beta)" in fails.stdout
        assert "hidden" not in works.stdout + works.stderr + fails.stdout + fails.stderr


def test_the_openapi_document_is_printed_and_leaves_nothing(tmp_path: Path) -> None:
    done = assay_anew("openapi", data_dir=tmp_path / "data")
    assert json.loads(done.stdout)["openapi"] == "3.1.0"
    assert not (tmp_path / "data").exists()


def test_version_and_help_answer(tmp_path: Path) -> None:
    assert assay_anew("--version", data_dir=tmp_path).stdout.strip() == "0.1.0"
    assert "serve" in assay_anew("--help", data_dir=tmp_path).stdout


def test_health_answers_on_every_documented_path(tmp_path: Path) -> None:
    with served(tmp_path, {"local": override_of_a_chain_nobody_asks()}) as server:
        with httpx2.Client(base_url=server.address, trust_env=False) as http:
            for path in ("/operator/health", "/api/health"):
                answer = http.get(path).json()
                assert (answer["ok"], answer["status"], answer["defaultChain"]) == (
                    True,
                    "ok",
                    "local",
                )
                assert len(answer["supportedChains"]) == 52
                head, whole = http.head(path), http.get(path)
                assert (head.status_code, head.content) == (200, b"")
                assert head.headers["content-length"] == whole.headers["content-length"]
            assert http.head("/operator/me").status_code == 401
            assert http.get("/api").json()["openapi"].endswith("/openapi.json")
            assert "text/html" in http.get("/docs").headers["content-type"]
        assert server.stop() == 0


def override_of_a_chain_nobody_asks() -> dict[str, object]:
    return {
        "chain_id": 31337,
        "identity_registry": "0x" + "1" * 40,
        "reputation_registry": "0x" + "2" * 40,
        "rpc_urls": ["http://127.0.0.1:9"],
    }
