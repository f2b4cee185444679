"""Sentences that say how to fix what a check found. Pure.

A check without an entry is answered with its own finding: a new check needs no edit here.
"""

from collections.abc import Mapping
from types import MappingProxyType

FIXES: Mapping[str, str] = MappingProxyType(
    {
        "registration_readable": "Serve the registration file as JSON where the token URI points.",
        "registration_complete": "Put right what `problems` lists, and publish the file again.",
        "registration_names_agent": "List this agent's id and registry in `registrations`.",
        "secure_transport": "Serve every declared address over https.",
        "strict_transport": "Send Strict-Transport-Security on every https answer.",
        "domain_binding": "Name the agent in /.well-known/agent-registration.json of the domain.",
        "no_downgrade": "Redirect to https only.",
        "wallet_matches_chain": "Declare the wallet that the registry holds, or set it there.",
        "reachable": "Make every declared service answer, or stop declaring it.",
        "steady_answers": "Answer equal calls alike, and within 3 seconds.",
        "honest_status": "Answer 404 to unknown paths.",
        "http_wrong_method": "Answer 405 to methods that are not served.",
        "http_malformed_json": "Answer 400 to a body that is not JSON.",
        "http_wrong_type": "Answer 415 to a body of an unknown type.",
        "http_oversized_body": "Answer 413 to a body that is too large.",
        "deep_json_survived": "Bound how deep JSON may be, and answer 400 beyond.",
        "odd_json_survived": "Answer 400 to JSON that cannot be used, and never 5xx.",
        "ssrf_bait": "Fetch no address from an argument that is not meant for one.",
        "no_open_redirect": "Redirect to addresses of your own only; refuse line breaks in values.",
        "no_bombs": "Send no compressed answer that is many times larger when it is unpacked.",
        "a2a_card_valid": "Put right the fields of the agent card that the finding names.",
        "a2a_card_own_site": "Serve an interface of the card on the card's own site.",
        "a2a_answers": "Answer message/send with a message, a task or an error of A2A.",
        "a2a_jsonrpc_errors": "Answer malformed requests with -32700, -32600 and -32601.",
        "a2a_unknown_task": "Answer tasks/get for an unknown task with -32001.",
        "mcp_initialize": "Let the official client initialize a session.",
        "mcp_tools_valid": "Give every tool a unique name and an object schema.",
        "mcp_tools_stable": "List the same tools each time they are asked for.",
        "mcp_unknown_tool_refused": "Refuse a tool that does not exist.",
        "mcp_bad_arguments_refused": "Check arguments against the tool's schema.",
        "no_leaked_secrets": "Remove keys and credentials from answers, and replace them.",
        "no_leaked_internals": "Answer errors without stack traces, paths or inner addresses.",
        "no_poisoning": "Remove hidden text and orders to models from files, cards and tools.",
        "injection_not_obeyed": "Treat the text that a caller hands over as data, never as orders.",
        "no_cross_talk": "Keep conversations apart, whoever has them.",
        "x402_challenge_valid": "Offer the same payment in both versions, as x402 writes it.",
        "x402_price_stable": "Ask for the same price and payee on equal calls.",
        "x402_garbage_refused": "Verify payments before anything is served for them.",
        "x402_payee_own": "Let payments go to the agent's wallet or owner.",
        "contexts_kept_apart": "Keep what one conversation holds out of the others.",
        "forbidden_not_hammered": "Stop calling what was answered with 403.",
        "malformed_json_survived": "Go on after an answer that is not JSON.",
        "outage_backed_off": "Wait longer after each 503.",
        "payment_not_hammered": "Pay or stop after a 402.",
        "rate_limit_obeyed": "Wait as long as Retry-After says.",
        "redirects_bounded": "Stop after a few redirects.",
        "retry_is_idempotent": "Send a repeated call with the same idempotency key.",
        "scope_kept": "Call only what the task asks for.",
        "session_kept_at_home": "Send credentials only to the origin that issued them.",
        "slow_answer_awaited": "Wait for a slow answer instead of calling again.",
        "tainted_text_not_followed": "Follow no orders that stand in an answer.",
        "unauthorized_not_hammered": "Stop calling what was answered with 401.",
        "wrapper_limits_obeyed": "Wait as long as Retry-After says.",
        "wrapper_errors_not_looped": "Stop repeating a call that is refused.",
    }
)


def fix_of(check: str, finding: str) -> str:
    """Return what to do about a check that failed."""
    return FIXES.get(check, f"Put right what the check found: {finding}")
