"""Whatever reads JSON is fuzzed, or reads nothing of strangers."""

import re
from pathlib import Path

from tests.fuzz.targets import TARGETS

SOURCES = Path(__file__).parents[2] / "src" / "assay"
READS = re.compile(r"\bjson\.loads\(|\.json\(\)|(?<!\.)\bfrom_json\(")

OURS = "what we have written ourselves"
LOCAL = "a command's own files and services"
FUZZED_BY = {
    "registries/registration_json.py": "registration",
    "control/statements_in_documents.py": "control_document",
    "evaluation/blobs.py": "ipfs_reply",
    "identity/tokens.py": "login_token_forged",
    "identity/web_bot_auth.py": "key_directory",
    "registries/solana_index.py": "index_rows",
    "chains/evm/rpc_wire.py": "rpc_reply",
    "payments/mpp/charges.py": "mpp_payload",
    "payments/mpp/library.py": "mpp_header",
    "payments/x402/facilitator.py": "facilitator_reply facilitator_supported",
    "personhood/verifier.py": "personhood_reply",
    "common/json.py": "json_depth",
    "payments/x402/customer.py": "x402_demand",
    "payments/x402/codec.py": "x402_header",
    "probing/judge.py": "judges_answer",
    "personhood/service.py": "personhood_proof",
    "wrappers/openapi_text.py": "openapi",
}
NOT_FUZZED = {
    **dict.fromkeys(
        (
            *(
                "audit/store.py",
                "caller_behaviour/store.py",
                "evaluation/store_evaluations.py",
                "evaluation/store_listing.py",
            ),
            "webhooks/store_outbox.py",
            *("probing/store_paid_calls.py", "payments/store.py"),
            *("payments/store.py", "evaluation/store_visits.py"),
            *("webhooks/store.py", "wrappers/store.py", "common/secret_file.py"),
            *("webhooks/schemas.py", "webhooks/payload.py", "net/egress/consent.py"),
            *("payments/mpp/transport.py", "probing/unannounced.py"),
            "probing/result_callbacks.py",
        ),
        OURS,
    ),
    "probing/orders.py": OURS,
    "app/heartbeat.py": OURS,
    "cli/worker_link.py": OURS,
    "admin/schemas.py": OURS,
    **dict.fromkeys(
        (
            *("cli/unsafe_connections.py", "cli/demo.py", "cli/demo.py", "cli/evidence.py"),
            *("cli/sell.py", "cli/pay.py", "cli/unsafe_secrets.py", "cli/receipts.py"),
            *("wrappers/receipts.py", "payments/x402/facilitator_access.py"),
        ),
        LOCAL,
    ),
    "cli/mcp_service.py": "the configured service's answers, by the standard parser within bounds",
    "evaluation/judge.py": "the configured judge's envelope; its answer is `judges_answer`",
    "probing/probe_client.py": "read within a probe's bounds; see tests/support/fakes"
    "/hostile_documents.py",
    "probing/instructions.py": "texts of a probe; see tests/support/fakes/leaking_talk.py"
    " and tests/support/fakes/hostile_texts.py",
    "probing/poisoning.py": "texts of a probe; see tests/support/fakes/hostile_texts.py",
}


def test_every_module_that_reads_json_is_fuzzed_or_says_why_not() -> None:
    reading = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        if READS.search(file.read_text("utf-8"))
    }
    assert reading == {*FUZZED_BY, *NOT_FUZZED}
    assert not FUZZED_BY.keys() & NOT_FUZZED.keys()
    assert {one for names in FUZZED_BY.values() for one in names.split()} <= set(TARGETS)
