"""Every operation of the interface is served, and nothing unknown is.

Source: interface.md#operations.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from assay import __version__

ROOT = Path(__file__).parents[2]

BUILT = {
    ("get", "/operator/health"),
    ("get", "/api"),
    ("get", "/api/health"),
    ("get", "/operator/agent/{agentId}"),
    ("get", "/operator/wallet/{wallet}"),
    ("get", "/operator/resolve-wallet/{wallet}"),
    ("post", "/operator/trigger-sandbox/{agentId}"),
    ("post", "/operator/gate/{agentId}"),
    ("get", "/operator/agent/{agentId}/snapshot"),
    ("get", "/operator/agent/{agentId}/liveness"),
    ("post", "/operator/key/{agentAddress}/challenge"),
    ("post", "/operator/key/verify"),
    ("get", "/operator/key/{agentAddress}"),
    ("get", "/operator/key/{agentAddress}/attestation"),
    ("post", "/operator/personhood/verify/{agentId}"),
    ("get", "/operator/personhood/status/{agentId}"),
    ("get", "/operator/personhood/profile/{agentId}"),
    ("post", "/operator/register"),
    ("post", "/operator/login"),
    ("get", "/operator/me"),
    ("patch", "/operator/me"),
    ("get", "/operator/keys"),
    ("post", "/operator/keys/rotate"),
    ("delete", "/operator/keys/{keyId}"),
    ("delete", "/operator/endpoints/{endpointId}"),
    ("post", "/operator/endpoints"),
    *(("get", "/wrap/{operatorId}/{path}"), ("post", "/wrap/{operatorId}/{path}")),
    *(("put", "/wrap/{operatorId}/{path}"), ("patch", "/wrap/{operatorId}/{path}")),
    ("delete", "/wrap/{operatorId}/{path}"),
    ("get", "/operator/endpoints"),
    ("post", "/operator/proxy/{agentId}"),
    ("post", "/operator/playground"),
    ("post", "/operator/webhooks/register"),
    ("get", "/operator/admin/stats"),
    ("get", "/operator/admin/operators"),
    ("get", "/operator/admin/operators/{id}"),
    ("get", "/operator/admin/operators/{id}/logs"),
    ("get", "/operator/analytics/stats"),
    ("get", "/operator/analytics/revenue"),
    ("get", "/operator/analytics/top-endpoints"),
    ("get", "/operator/analytics/agents"),
    ("get", "/operator/analytics/agents/{agentId}"),
    ("get", "/operator/analytics/logs"),
}

BEYOND = {
    ("post", "/operator/logout"),
    ("get", "/operator/sessions"),
    ("delete", "/operator/sessions"),
    ("delete", "/operator/sessions/{sessionId}"),
    ("post", "/operator/password"),
    ("post", "/operator/password/reset-request"),
    ("post", "/operator/password/reset"),
    ("post", "/operator/email/verify-request"),
    ("post", "/operator/email/verify"),
    ("post", "/operator/totp"),
    ("post", "/operator/totp/confirm"),
    ("post", "/operator/totp/recovery-codes"),
    ("post", "/operator/totp/disable"),
    ("get", "/operator/keys/{keyId}/gate-policies"),
    ("put", "/operator/keys/{keyId}/gate-policies"),
    ("get", "/gate/check"),
    ("get", "/gate/check/{policy}"),
    ("get", "/gate/refusal/{policy}"),
    ("get", "/operator/me/export"),
    ("delete", "/operator/me"),
    ("get", "/operator/webhooks"),
    ("get", "/operator/webhooks/deliveries"),
    ("delete", "/operator/webhooks/{webhookId}"),
    ("post", "/operator/webhooks/{webhookId}/verify"),
    ("patch", "/operator/endpoints/{endpointId}"),
    ("post", "/operator/endpoints/import"),
    ("get", "/operator/endpoints/{endpointId}/history"),
    ("patch", "/operator/admin/operators/{id}"),
    ("get", "/operator/admin/audit"),
    ("get", "/operator/analytics/logs/export"),
    ("get", "/operator/statement"),
    ("get", "/operator/statement/export"),
    ("get", "/operator/statement/transfers"),
    ("get", "/operator/statement/transfers/export"),
    ("get", "/operator/admin/statement"),
    ("post", "/operator/trigger-sandbox-key/{agentAddress}"),
    ("get", "/operator/agents"),
    ("get", "/operator/agent/{agentId}/report"),
    ("get", "/operator/agent/{agentId}/history"),
    ("post", "/operator/agent/{agentId}/visits"),
    ("delete", "/operator/agent/{agentId}/visits"),
    ("get", "/operator/visits"),
    ("post", "/operator/agent/{agentId}/credentials"),
    ("get", "/operator/agent/{agentId}/credentials"),
    ("delete", "/operator/agent/{agentId}/credentials/{credentialId}"),
    ("delete", "/operator/key/{agentAddress}/session"),
    ("get", "/.well-known/jwks.json"),
    ("get", "/.well-known/security.txt"),
    ("get", "/.well-known/api-catalog"),
    ("get", "/.well-known/agent-registration.json"),
    ("get", "/robots.txt"),
    ("get", "/llms.txt"),
    ("get", "/livez"),
    ("get", "/readyz"),
    ("get", "/operator/sandbox/course"),
    ("post", "/operator/sandbox/course"),
    ("get", "/operator/sandbox/bait/{word}"),
}
"""Additions to the specification, documented as such."""


@pytest.fixture(scope="module")
def served() -> set[tuple[str, str]]:
    done = subprocess.run(
        [sys.executable, "-m", "assay", "openapi"],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == "1.0.0"
    assert document["info"]["x-product-version"] == __version__
    return {
        (m, path) for path, item in document["paths"].items() for m in item if m != "parameters"
    }


def test_every_built_operation_of_the_specification_is_served(
    served: set[tuple[str, str]],
) -> None:
    assert served >= BUILT


def test_whatever_goes_beyond_the_specification_is_known(served: set[tuple[str, str]]) -> None:
    assert served - BUILT == BEYOND


def test_every_addition_is_listed_as_one() -> None:
    page = (ROOT / "docs/reference/interface.md").read_text("utf-8")
    listed = re.findall(r"(?m)^- `([A-Z]+) (\S+)`$", page.partition("### Additions")[2])
    assert {(method.lower(), path) for method, path in listed} == BEYOND
