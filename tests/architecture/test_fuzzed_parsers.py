"""Whatever reads JSON is fuzzed, or reads nothing of strangers."""

import re
from pathlib import Path

from tests.fuzz.targets import TARGETS

SOURCES = Path(__file__).parents[2] / "src" / "assay"
READS = re.compile(r"\bjson\.loads\(|\.json\(\)|(?<!\.)\bfrom_json\(")

OURS = "what we have written ourselves"
LOCAL = "a command's own files and services"
FUZZED_BY = {
    "chains/registration_json.py": "registration",
    "control/documents.py": "control_document",
    "infra/blobs.py": "ipfs_reply",
    "infra/crypto/tokens.py": "login_token_forged",
    "infra/http/agent_index.py": "index_rows",
    "infra/http/rpc_wire.py": "rpc_reply",
    "infra/payments/mpp_credentials.py": "mpp_payload",
    "infra/payments/mpp_library.py": "mpp_header",
    "infra/payments/x402_facilitator.py": "facilitator_reply",
    "infra/payments/x402_supported.py": "facilitator_supported",
    "infra/personhood.py": "personhood_reply",
    "kit/json.py": "json_depth",
    "payments/x402_demand.py": "x402_demand",
    "payments/x402_wire.py": "x402_header",
    "probing/judging.py": "judges_answer",
    "trust/personhood.py": "personhood_proof",
}
NOT_FUZZED = {
    **dict.fromkeys(
        (
            *("infra/sql/audit.py", "infra/sql/course.py", "infra/sql/evaluations.py"),
            "infra/sql/outbox.py",
            *("infra/sql/paid_calls.py", "infra/sql/paid_responses.py"),
            *("infra/sql/payment_rows.py", "infra/sql/visits.py"),
            *("infra/sql/webhooks.py", "infra/sql/wrapper_rows.py", "infra/secret_file.py"),
            *("web/wire/webhooks.py", "webhooks/payload.py", "egress/consent.py"),
            *("infra/payments/mpp_transport.py", "probing/unannounced.py"),
            "trust/callbacks.py",
        ),
        OURS,
    ),
    "probing/ask_signs.py": OURS,
    "probing/lexicon.py": OURS,
    **dict.fromkeys(
        (
            *("cli/connections_note.py", "cli/demo.py", "cli/demo_client.py", "cli/evidence.py"),
            *("cli/first_sale.py", "cli/pay.py", "cli/unsafe_keys.py"),
        ),
        LOCAL,
    ),
    "infra/judge.py": "the configured judge's envelope; its answer is `judges_answer`",
    "probing/asking.py": "read within the bounds of a probe; see tests/fakes/hostile_documents.py",
    "probing/briefings.py": "texts of a probe; see tests/fakes/leaking_talk.py",
    "probing/rule_questions.py": "texts of a probe; see tests/fakes/leaking_talk.py",
    "probing/instruction_texts.py": "texts of a probe; see tests/fakes/hostile_texts.py",
    "probing/reader_instructions.py": "texts of a probe; see tests/fakes/hostile_texts.py",
}


def test_every_module_that_reads_json_is_fuzzed_or_says_why_not() -> None:
    reading = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        if READS.search(file.read_text("utf-8"))
    }
    assert reading == {*FUZZED_BY, *NOT_FUZZED}
    assert not FUZZED_BY.keys() & NOT_FUZZED.keys()
    assert set(FUZZED_BY.values()) <= set(TARGETS)
