"""The service's operations, as steps without I/O (interface.md#operations)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from typing_extensions import Unpack

from assay_client.errors import InvalidInput, UnexpectedResponse
from assay_client.flow import Core, Run, Steps, header_value, json_names, json_of, query, segment
from assay_client.flow import session_of as session_in
from assay_client.models import (
    Account,
    Decision,
    Evaluation,
    GateOptions,
    Profile,
    Wrapper,
    WrapperOptions,
    decode,
    list_of,
    object_of,
)
from assay_client.session import AgentSession

_AGENT_HEADERS = ("address", "session", "challenge", "signature")
_BODY = ("min_score", "ttl_ms", "trust_signals", "cold_start")
_ADDRESS_CHARS = 42


def gate_steps(core: Core, agent_id: str, options: GateOptions) -> Steps[Decision]:
    """Ask whether the agent may pass; a denial is a `Decision`, not an error.

    A lost response is asked for again, which can count twice in the allowance. A call with a signed
    challenge is sent once.
    """
    given: Mapping[str, object] = {**options}
    headers: dict[str, str] = {}
    for name in _AGENT_HEADERS:
        value = given.get(name)
        if value is not None:
            headers[f"x-agent-{name}"] = header_value(name, str(value))
    body = json_names({n: v for n, v in given.items() if n in _BODY and v is not None})
    path = f"/operator/gate/{segment('agent_id', agent_id)}{query(options.get('chain'))}"
    request = core.request("POST", path, headers=headers, body=body, credential=_key(core))
    is_proof = "x-agent-signature" in headers
    request = replace(request, is_idempotent=not is_proof, is_single_use=is_proof)
    received = yield from core.send(request)
    return decode(Decision, json_of(received), agent_session=session_in(received))


def profile_steps(core: Core, agent_id: str, chain: str | None) -> Steps[Profile]:
    """Fetch the trust profile of a registered agent."""
    path = f"/operator/agent/{segment('agent_id', agent_id)}{query(chain)}"
    received = yield from core.send(core.request("GET", path, credential=_key(core)))
    return decode(Profile, json_of(received))


def evaluate_steps(core: Core, agent_id: str, chain: str | None) -> Steps[Evaluation]:
    """Evaluate an agent, or the key agent of an address, now; the service takes up to 25 s."""
    is_address = agent_id.startswith("0x") and len(agent_id) == _ADDRESS_CHARS
    operation = "trigger-sandbox-key" if is_address else "trigger-sandbox"
    path = f"/operator/{operation}/{segment('agent_id', agent_id)}{query(chain)}"
    received = yield from core.send(core.request("POST", path, credential=core.api_key))
    return decode(Evaluation, json_of(received))


def wrappers_steps(core: Core) -> Steps[list[Wrapper]]:
    """List the operator's wrappers, newest first, inactive ones included."""
    request = core.request("GET", "/operator/endpoints", credential=_key_or_token(core))
    listed = list_of(json_of((yield from core.send(request))))
    if listed is None:
        raise UnexpectedResponse("The list of wrappers is not a JSON array.")
    return [decode(Wrapper, one) for one in listed]


def create_wrapper_steps(core: Core, **options: Unpack[WrapperOptions]) -> Steps[Wrapper]:
    """Create a wrapper; it answers at once."""
    return _changed(core, "POST", "/operator/endpoints", options)


def update_wrapper_steps(
    core: Core, wrapper_id: str, revision: int | None, **options: Unpack[WrapperOptions]
) -> Steps[Wrapper]:
    """Change the members that are given; raises `Conflict` if `revision` is not the newest."""
    match = {} if revision is None else {"if-match": f'"{revision}"'}
    path = f"/operator/endpoints/{segment('wrapper_id', wrapper_id)}"
    return _changed(core, "PATCH", path, options, match)


def _changed(
    core: Core,
    method: str,
    path: str,
    options: Mapping[str, object],
    headers: Mapping[str, str] | None = None,
) -> Steps[Wrapper]:
    body, credential = json_names(options), _key_or_token(core)
    request = core.request(method, path, headers=headers, body=body, credential=credential)
    return decode(Wrapper, json_of((yield from core.send(request))))


def delete_wrapper_steps(core: Core, wrapper_id: str) -> Steps[None]:
    """Deactivate a wrapper at once."""
    path = f"/operator/endpoints/{segment('wrapper_id', wrapper_id)}"
    yield from core.send(core.request("DELETE", path, credential=_key_or_token(core)))


def me_steps(core: Core) -> Steps[Account]:
    """Fetch the operator's account and allowance."""
    if core.token is None:
        raise InvalidInput("me() needs a dashboard token: pass token=, an API key does not do.")
    request = core.request("GET", "/operator/me", credential=core.token)
    return decode(Account, json_of((yield from core.send(request))))


def open_session_steps(core: Core, session: AgentSession) -> Steps[AgentSession]:
    """Complete challenge, signature and session; the session is in the same object."""
    address = segment("address", session.address)
    request = core.request("POST", f"/operator/key/{address}/challenge")
    found = object_of(json_of((yield from core.send(request)))) or {}
    challenge = found.get("challenge")
    if not isinstance(challenge, str):
        raise UnexpectedResponse("The challenge has no text.")
    answered: Mapping[str, str] = yield Run(partial(session.answer, challenge))
    body = {
        "agentAddress": session.address,
        "challenge": challenge,
        "signature": answered["x-agent-signature"],
    }
    proof = replace(core.request("POST", "/operator/key/verify", body=body), is_single_use=True)
    received = yield from core.send(proof)
    session.update(received.headers)
    if session_in(received) is None or session.token is None:
        raise UnexpectedResponse("The verified proof brought no session.")
    return session


def _key(core: Core) -> str:
    if core.api_key is None:
        raise InvalidInput("This call needs an API key: pass api_key=.")
    return core.api_key


def _key_or_token(core: Core) -> str:
    credential = core.token or core.api_key  # a key may lack the scope
    if credential is None:
        raise InvalidInput("This call needs an API key or a dashboard token.")
    return credential
