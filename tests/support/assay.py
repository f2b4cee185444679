"""A real `assay serve` process for tests that want nothing in between."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from eth_account import Account
from eth_account.messages import encode_defunct

from tests.support.databases import give_schema
from tests.support.forked import ROOT, SERVICE, Process, start
from tests.support.starting import HUNG_S


@dataclass
class Served:
    """A serving process; `kill` and `start` again to see what survives."""

    environment: dict[str, str]
    address: str = ""
    process: Process | None = None
    log: str = ""
    files: tuple[int, int] | None = None
    """How many it may have open: the soft limit and the hard one."""
    imported: tuple[str, ...] = SERVICE

    def start(self) -> None:
        log = tempfile.NamedTemporaryFile("w+", suffix=".log", delete=False)  # noqa: SIM115
        self.log = log.name
        self.process = start(
            "assay.__main__",
            "serve",
            imported=self.imported,
            environment=self.environment,
            streams=(None, subprocess.PIPE, log.fileno()),
            files=self.files,
        )
        log.close()
        assert self.process.stdout is not None
        timer = threading.Timer(HUNG_S, self.process.kill)
        timer.start()
        first = self.process.stdout.readline()
        timer.cancel()
        found = re.search(r"https?://\S+", first)
        assert found, f"no address in {first!r}; the log says:\n{self.said()}"
        self.address = found.group()

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self.process is not None
        return self.process.pid

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def said(self) -> str:
        """Everything logged so far."""
        return Path(self.log).read_text("utf-8")


def resident_mib(pid: int) -> int:
    """How much memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


@contextmanager
def served(
    data_dir: Path,
    chains: Mapping[str, Mapping[str, object]],
    *,
    files: tuple[int, int] | None = None,
    imported: tuple[str, ...] = SERVICE,
    **settings: str,
) -> Iterator[Served]:
    """`assay serve` on a port of its own, with `local` as its default chain."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}  # noqa: TID251
    environment = plain | {
        "PYTHONPATH": str(ROOT / "src"),
        "ASSAY_DATA_DIR": str(data_dir),
        "ASSAY_PORT": "0",
        "ASSAY_CHAINS": json.dumps(chains),
        "ASSAY_DEFAULT_CHAIN": next(iter(chains)),
        "ASSAY_ALLOW_PRIVATE_UPSTREAMS": "1",
        "ASSAY_ANONYMOUS_PER_MINUTE": "100000",
        "ASSAY_ACCOUNTS_PER_ADDRESS": "10000",
        "ASSAY_SANDBOX_PER_MINUTE": "1000",
        "ASSAY_SANDBOX_PER_AGENT_MINUTE": "1000",
        "ASSAY_LOG_FORMAT": "json",
        "ASSAY_SELF_REGISTRY": "",
        **settings,
    }
    if "ASSAY_DATABASE_URL" not in settings:
        give_schema(data_dir)
    server = Served(environment, files=files, imported=imported)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.stop()
        Path(server.log).unlink(missing_ok=True)


def operator(http: httpx2.Client, email: str = "op@example.com") -> dict[str, str]:
    """Register an account; returns its bearer header for operator endpoints."""
    body = {"email": email, "password": "correct horse battery", "name": "Op"}
    answer = http.post("/operator/register", json=body)
    assert answer.status_code == 200, answer.text
    return {"authorization": f"Bearer {answer.json()['apiKey']}"}


def sign(key: str, text: str) -> str:
    """An EIP-191 signature by the reference implementation."""
    return "0x" + Account.sign_message(encode_defunct(text=text), key).signature.hex()


def session(http: httpx2.Client, key: str) -> dict[str, str]:
    """Prove the key's address; returns the agent headers of the session."""
    address = Account.from_key(key).address
    challenge = http.post(f"/operator/key/{address}/challenge").json()["challenge"]
    body = {"agentAddress": address, "challenge": challenge, "signature": sign(key, challenge)}
    answer = http.post("/operator/key/verify", json=body)
    assert answer.status_code == 200, answer.text
    return {"x-agent-address": address, "x-agent-session": answer.headers["x-agent-session"]}
