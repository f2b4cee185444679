"""Personhood, Self, attestations and wallets, read from contracts on a real chain."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from eth_abi.abi import encode
from eth_account import Account

from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.registries import register
from tests.support.assay import operator, served, session
from tests.support.chain import LocalChain, local_chain
from tests.support.evidence import VECTOR, Attestations, SelfRegistry, deploy_router
from tests.support.shop import until_known

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SCHEMA, OTHER_SCHEMA = "0x" + "ab" * 32, "0x" + "cd" * 32
FIRST_OWNER = 29
ATTESTER, ANYBODY = ACCOUNTS[30], ACCOUNTS[31]
PROOF = {name: VECTOR[name] for name in ("merkle_root", "nullifier_hash", "proof", "signal")}
FIELDS = "string source, string handle, string organization, string profileUrl"


@dataclass
class Office:
    """A serving Assay that is told where evidence lies."""

    http: httpx2.Client
    chain: LocalChain
    attestations: Attestations
    selves: SelfRegistry
    free: dict[str, str]
    pro: dict[str, str]

    def agent(self, owner: int) -> tuple[str, str]:
        """A new agent and its owner's key."""
        key = ACCOUNTS[owner].key
        return register(self.chain.wallet, self.chain.registries, key, ""), key

    def signal(self, agent_id: str, name: str) -> dict[str, Any]:
        profile = self.http.get(f"/operator/agent/{agent_id}", headers=self.free).json()
        return next(s for s in profile["signals"] if s["signal"] == name)

    def gate(self, agent_id: str, key: str, **body: object) -> dict[str, Any]:
        headers = self.free | session(self.http, key)
        return self.http.post(f"/operator/gate/{agent_id}", headers=headers, json=body).json()

    def attest(
        self, subject: str, by: str = ATTESTER.key, schema: str = SCHEMA, **how: Any
    ) -> bytes:
        texts = ["github", "octocat", "Acme", "https://profiles.test/octocat"]
        data = encode(["string"] * 4, texts)
        return self.attestations.attest(by, schema, subject, data, **how)

    def context(self, subject: str) -> dict[str, Any]:
        answer = self.http.get(f"/operator/key/{subject}/attestation", headers=self.pro)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def own_chain() -> Iterator[LocalChain]:
    """One on which agent 0 is ours: the vector's proof was made for it."""
    with local_chain() as chain:
        register(chain.wallet, chain.registries, ACCOUNTS[FIRST_OWNER].key, "")
        yield chain


@pytest.fixture(scope="module")
def office(own_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    chain = own_chain
    deployer = ACCOUNTS[0].key
    attestations = Attestations.deploy(chain.wallet, deployer)
    selves = SelfRegistry.deploy(chain.wallet, deployer)
    router = deploy_router(chain.wallet, deployer)
    source = {
        "chain": "local",
        "eas": attestations.address,
        "schema": SCHEMA,
        "fields": FIELDS,
        "attesters": [ATTESTER.address],
    }
    network = chain.network
    row = {
        "chain_id": network.chain_id,
        "identity_registry": network.identity_registry,
        "reputation_registry": network.reputation_registry,
        "rpc_urls": list(network.rpc_urls),
        "multicall3": False,
    }
    folder = tmp_path_factory.mktemp("evidence")
    with (
        served(
            folder,
            {"local": row},
            ASSAY_SELF_REGISTRY=f"local:{selves.address}",
            ASSAY_ATTESTATION_SOURCES=json.dumps([source]),
            ASSAY_WORLD_ID_APP=VECTOR["app_id"],
            ASSAY_WORLD_ID_ROUTER=f"local:{router}",
        ) as server,
        httpx2.Client(base_url=server.address, timeout=40, trust_env=False) as http,
    ):
        free, pro = operator(http, "free@example.com"), operator(http, "pro@example.com")
        run = [sys.executable, "-m", "assay", "accounts", "set-plan", "pro@example.com", "pro"]
        subprocess.run(run, env=server.environment, check=True, capture_output=True)
        yield Office(http, chain, attestations, selves, free, pro)


# -- personhood -----------------------------------------------------------------------------------

VERIFY = "/operator/personhood/verify/{}"
STATUS = "/operator/personhood/status/{}"
PROFILE = "/operator/personhood/profile/{}"


def verified(office: Office, proof: dict[str, object]) -> httpx2.Response:
    """The chain works a pairing out in Python: on a busy machine not always in time."""
    return until_known(lambda: office.http.post(VERIFY.format("0"), json=proof))


def refused(answer: httpx2.Response, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return answer.json()["message"]


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"proof": VECTOR["proof"][:-1] + "0"}, 400, "proof_invalid"),
        ({"merkle_root": "0x01"}, 400, "proof_invalid"),
        ({"nullifier_hash": "0x01"}, 400, "proof_invalid"),
        ({"signal": "31337:1"}, 400, "proof_invalid"),
        ({"signal": "0"}, 400, "proof_invalid"),
        ({"verification_level": "device"}, 400, "proof_invalid"),
        ({"verification_level": "moon"}, 400, "invalid_request"),
        ({"proof": "0x00"}, 400, "invalid_request"),
        ({"proof": "[" * 3000}, 400, "invalid_request"),
        ({"proof": json.dumps(["1"] * 7)}, 400, "invalid_request"),
        ({"merkle_root": "twelve"}, 400, "invalid_request"),
        ({"merkle_root": "0" * 78}, 400, "invalid_request"),
        ({"nullifier_hash": "0x" + "ff" * 32}, 400, "invalid_request"),
        ({"signal": 0}, 400, "invalid_request"),
        ({"more": "x"}, 400, "invalid_request"),
    ],
)
def test_a_proof_that_does_not_hold_is_refused_and_proves_nothing(
    office: Office, changed: dict[str, object], status: int, code: str
) -> None:
    refused(verified(office, PROOF | changed), status, code)


def test_who_is_no_agent_has_no_human(office: Office) -> None:
    refused(office.http.post(VERIFY.format("999"), json=PROOF), 404, "agent_not_found")
    refused(office.http.get(STATUS.format("999")), 404, "agent_not_found")
    refused(office.http.get(PROFILE.format("x")), 400, "invalid_request")


def test_a_human_behind_an_agent_lifts_its_score_at_once_even_from_the_cache(
    office: Office,
) -> None:
    """A real Groth16 proof; its signal names agent 0 of chain 31337."""
    key = ACCOUNTS[FIRST_OWNER].key
    before = office.http.get(STATUS.format("0")).json()
    assert before == {"verified": False, "level": None, "verifiedAt": None}
    office.gate("0", key)
    cached = office.gate("0", key)
    told = verified(office, PROOF)
    assert told.status_code == 200, told.text
    assert told.json() | {"verifiedAt": ""} == {
        "verified": True, "agentId": "0", "level": "orb", "verifiedAt": "",
    }  # fmt: skip
    lifted = office.gate("0", key)
    assert (cached["cached"], lifted["cached"]) == (True, True)
    assert lifted["score"] == pytest.approx(cached["score"] + 8)
    assert not lifted["allow"]  # and a denial names only what counts against an agent
    admitted = office.gate("0", key, minScore=0)
    assert any("proven human" in reason for reason in admitted["reasons"])
    status = office.http.get(STATUS.format("0")).json()
    assert status == {"verified": True, "level": "orb", "verifiedAt": told.json()["verifiedAt"]}
    shown = office.http.get(PROFILE.format("0")).json()
    assert shown == {"agentId": "0", "personhood": status}
    words = [str(int(VECTOR["proof"][2 + 64 * n : 66 + 64 * n], 16)) for n in range(8)]
    other_spelling = PROOF | {
        "proof": json.dumps([words[:2], [words[2:4], words[4:6]], words[6:]]),
        "merkle_root": str(int(VECTOR["merkle_root"], 16)),
        "verification_level": "orb",
    }
    again = verified(office, other_spelling)
    assert (again.status_code, again.json()) == (200, told.json())


def test_personhood_as_a_signal_is_for_pro_operators(office: Office) -> None:
    key = ACCOUNTS[FIRST_OWNER].key
    denied = office.gate("0", key, trustSignals=["personhood"])
    assert (denied["code"], denied["signal"]) == ("plan_required", "personhood")
    headers = office.pro | session(office.http, key)
    asked = {"trustSignals": ["personhood", "8004"]}
    given = office.http.post("/operator/gate/0", headers=headers, json=asked).json()
    assert {s["signal"] for s in given["signals"]} == {"personhood", "8004"}


# -- Self, wallet ---------------------------------------------------------------------------------


def test_self_proves_a_human_behind_a_wallet(office: Office) -> None:
    nobody, stale, forged, proven = (office.agent(owner)[0] for owner in (24, 25, 26, 27))
    put = office.selves.put
    put(ACCOUNTS[0].key, ACCOUNTS[25].address, 1, fresh=False)
    put(ACCOUNTS[0].key, ACCOUNTS[26].address, 2, provider=ANYBODY.address)
    put(ACCOUNTS[0].key, ACCOUNTS[27].address, 3)
    assert office.signal(nobody, "self")["confidence"] == 0
    assert office.signal(stale, "self")["confidence"] == 0
    assert office.signal(forged, "self")["confidence"] == 0
    found = office.signal(proven, "self")
    assert (found["value"], found["confidence"]) == (100, 0.9)
    assert found["evidence"] == {"registered": True, "holds": True, "agents": 1}


def test_what_a_wallet_did_for_nothing_says_nothing_of_its_agent(office: Office) -> None:
    """A hundred transactions and a full purse cost next to nothing."""
    used, new = (office.signal(office.agent(owner)[0], "wallet") for owner in (32, 2))
    assert (used["value"], used["confidence"]) == (new["value"], new["confidence"]) == (50, 0)
    assert used["evidence"]["rules"] == 2


# -- attestation ----------------------------------------------------------------------------------


def key_agent() -> tuple[str, str]:
    made = Account.create()
    return made.address, "0x" + made.key.hex().removeprefix("0x")


def test_an_attestation_by_a_trusted_attester_is_found_and_read(office: Office) -> None:
    subject, _ = key_agent()
    uid = office.attest(subject)
    assert office.context(subject) == {
        "agentAddress": subject.lower(),
        "attestation": {
            "attested": True,
            "uid": "0x" + uid.hex(),
            "owner": None,
            "verifiedHandles": [{"source": "github", "handle": "octocat"}],
            "organization": "Acme",
            "profileUrl": "https://profiles.test/octocat",
            "credentialUrl": None,
        },
    }
    profile = office.http.get(f"/operator/key/{subject}", headers=office.free).json()
    assert profile["attestation"]["uid"] == "0x" + uid.hex()


def test_what_does_not_hold_is_no_attestation(office: Office) -> None:
    revoked, expired, forged, other, none = (key_agent()[0] for _ in range(5))
    office.attestations.revoke(ATTESTER.key, office.attest(revoked))
    office.attest(expired, expires=1)
    office.attest(forged, by=ANYBODY.key)
    office.attest(other, schema=OTHER_SCHEMA)
    for subject in (revoked, expired, forged, other, none):
        assert office.context(subject)["attestation"]["attested"] is False, subject


def test_an_older_attestation_that_holds_outlives_a_newer_one_that_does_not(
    office: Office,
) -> None:
    subject, _ = key_agent()
    older = office.attest(subject)
    office.attestations.revoke(ATTESTER.key, office.attest(subject))
    assert office.context(subject)["attestation"]["uid"] == "0x" + older.hex()


def test_the_attestation_is_for_a_pro_operator_or_the_agent_itself(office: Office) -> None:
    subject, key = key_agent()
    path = f"/operator/key/{subject}/attestation"
    assert refused(office.http.get(path, headers=office.free), 403, "plan_required")
    refused(office.http.get(path), 401, "identity_required")
    asked = office.http.get(path, headers={"x-agent-address": subject})
    refused(asked, 401, "challenge_required")
    assert asked.json()["challenge"]
    own = office.http.get(path, headers=session(office.http, key))
    assert own.json()["attestation"]["attested"] is False
    stranger = session(office.http, key_agent()[1])
    refused(office.http.get(path, headers=stranger), 401, "identity_mismatch")
    refused(office.http.get(path, headers={"authorization": "Bearer x"}), 401, "unauthorized")


def test_an_attestation_alone_moves_no_score(office: Office) -> None:
    agent_id, key = office.agent(33)
    office.attest(ACCOUNTS[33].address)
    profile = office.http.get(f"/operator/agent/{agent_id}", headers=office.free).json()
    assert "attestation" not in {s["signal"] for s in profile["signals"]}
    headers = office.pro | session(office.http, key)
    asked = {"trustSignals": ["attestation"]}
    given = office.http.post(f"/operator/gate/{agent_id}", headers=headers, json=asked).json()
    assert [s["signal"] for s in given["signals"]] == ["attestation"]
    assert given["score"] > 50
