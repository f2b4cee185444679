"""The blocking and the asynchronous client: both carry out the same steps."""

import time
from decimal import Decimal
from types import TracebackType
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx2
from typing_extensions import Self, TypedDict, Unpack, override

from assay_client.errors import AssayError, ConnectionFailed, UnexpectedResponse
from assay_client.flow import Core, Received, Retries, Run, Send, Steps, Wait
from assay_client.models import (
    Account,
    Decision,
    DecisionClaims,
    Evaluation,
    GateOptions,
    Profile,
    ReceiptClaims,
    Wrapper,
    WrapperOptions,
)
from assay_client.operations import (
    create_wrapper_steps,
    delete_wrapper_steps,
    evaluate_steps,
    gate_steps,
    me_steps,
    open_session_steps,
    profile_steps,
    update_wrapper_steps,
    wrappers_steps,
)
from assay_client.payments import PaidResponse, Payer, Payment, PayOptions, pay_steps
from assay_client.session import AgentSession
from assay_client.tokens import DecisionVerifier

T = TypeVar("T")

RESPONSE_BYTES_MAX = 16 * 2**20
"""The longest response that is read: an account can have 5,000 wrappers."""

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


TIMEOUT_S = 30.0
"""The service answers within 25 s (interface.md#trust-evaluation)."""


class ClientOptions(TypedDict, total=False):
    """Options of a client; all may be left out."""

    api_key: str | None
    """The operator's key, for the gate, profiles and wrappers."""
    token: str | None
    """A dashboard token, for `me` and wrappers."""
    timeout_s: float
    """The longest wait for one response."""
    retries: Retries | None
    response_bytes_max: int


class _Client:
    """What both clients have in common."""

    def __init__(self, base_url: str, **options: Unpack[ClientOptions]) -> None:
        retries = options.get("retries") or Retries()
        self.core = Core(base_url, options.get("api_key"), options.get("token"), retries)
        self._bytes_max = options.get("response_bytes_max", RESPONSE_BYTES_MAX)
        self._timeout_s = timeout_s = options.get("timeout_s", TIMEOUT_S)
        self._verifier = DecisionVerifier(self.core)
        # Proxies and certificates of the environment are not used: nobody but the caller decides
        # where the key goes. Redirects would carry it to another address.
        self._options: dict[str, Any] = {
            "timeout": httpx2.Timeout(timeout_s, connect=min(timeout_s, 5)),
            "follow_redirects": False,
            "trust_env": False,
        }

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.core.base_url!r})"

    def _arguments(self, request: Send) -> dict[str, Any]:
        headers = {"accept-encoding": "identity", "user-agent": "assay-client", **request.headers}
        is_own = request.path.startswith("/")
        url = self.core.base_url + request.path if is_own else request.path
        return {
            "method": request.method,
            "url": url,
            "headers": headers,
            "content": request.body,
        }

    def _add(self, body: bytearray, chunk: bytes) -> None:
        if len(body) + len(chunk) > self._bytes_max:
            raise UnexpectedResponse(f"The response is longer than {self._bytes_max} bytes.")
        body += chunk

    def _received(self, request: Send, response: httpx2.Response, body: bytearray) -> Received:
        is_plain = response.headers.get("content-encoding", "identity") == "identity"
        if response.is_redirect and not request.is_relayed:
            raise UnexpectedResponse("The service redirects, which is not followed: see base_url.")
        if not is_plain and not request.is_relayed:
            raise UnexpectedResponse("The response is compressed, which was not asked for.")
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Received(response.status_code, headers, bytes(body))


def _failure(error: Exception) -> ConnectionFailed:
    """Return our error; the library's has the request with its headers, and is not kept."""
    sent = not isinstance(error, _NOT_SENT)
    return ConnectionFailed(f"No response of the service: {type(error).__name__}.", sent=sent)


class Assay(_Client):
    """The blocking client; threads may share it. Use it in a `with` block, or close it.

    Every method raises `AssayError`; `errors` has the tree.
    """

    def __init__(self, base_url: str, **options: Unpack[ClientOptions]) -> None:
        super().__init__(base_url, **options)
        self._http = httpx2.Client(**self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, steps: Steps[T]) -> T:
        """Carry out the steps of an operation and return its result."""
        reply: Any = None
        failure: AssayError | None = None
        while True:
            try:
                step = steps.send(reply) if failure is None else steps.throw(failure)
            except StopIteration as done:
                return done.value
            reply = failure = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            elif isinstance(step, Run):
                reply = step.call()
            else:
                reply = self._send(step)
                if isinstance(reply, AssayError):
                    reply, failure = None, reply

    def _send(self, request: Send) -> Received | AssayError:
        body, until = bytearray(), time.monotonic() + self._timeout_s
        try:
            with self._http.stream(**self._arguments(request)) as response:
                for chunk in response.iter_raw():
                    self._add(body, chunk)
                    if time.monotonic() > until:
                        raise httpx2.ReadTimeout("")
            return self._received(request, response, body)
        except (httpx2.TransportError, httpx2.StreamError) as error:
            return _failure(error)
        except UnexpectedResponse as error:
            return error

    def gate(self, agent_id: str, **options: Unpack[GateOptions]) -> Decision:
        """Ask whether the agent may pass; a denial is a `Decision` with `allow` false."""
        return self.run(gate_steps(self.core, agent_id, options))

    def profile(self, agent_id: str, *, chain: str | None = None) -> Profile:
        """Fetch the trust profile of a registered agent."""
        return self.run(profile_steps(self.core, agent_id, chain))

    def evaluate(self, agent_id: str, *, chain: str | None = None) -> Evaluation:
        """Evaluate an agent, or the key agent of an address, now; takes up to 25 s."""
        return self.run(evaluate_steps(self.core, agent_id, chain))

    def wrappers(self) -> list[Wrapper]:
        """List the operator's wrappers, newest first, inactive ones included."""
        return self.run(wrappers_steps(self.core))

    def create_wrapper(self, **options: Unpack[WrapperOptions]) -> Wrapper:
        """Create a wrapper; it answers at once. `path` and `price_per_call` are required."""
        return self.run(create_wrapper_steps(self.core, **options))

    def update_wrapper(
        self, wrapper_id: str, *, revision: int | None = None, **options: Unpack[WrapperOptions]
    ) -> Wrapper:
        """Change the members that are given; raises `Conflict` if `revision` is not the newest."""
        return self.run(update_wrapper_steps(self.core, wrapper_id, revision, **options))

    def delete_wrapper(self, wrapper_id: str) -> None:
        """Deactivate a wrapper at once."""
        self.run(delete_wrapper_steps(self.core, wrapper_id))

    def me(self) -> Account:
        """Fetch the account and its allowance; needs the dashboard `token`."""
        return self.run(me_steps(self.core))

    def open_session(self, session: AgentSession) -> AgentSession:
        """Prove an agent's address: challenge, signature, session. Returns the same object."""
        return self.run(open_session_steps(self.core, session))

    def pay(
        self,
        url: str,
        payer: Payer,
        *,
        max_price: Decimal | str,
        payment: Payment | None = None,
        **options: Unpack[PayOptions],
    ) -> PaidResponse:
        """Call a URL, and pay its 402 over x402 or MPP if it asks for at most `max_price` USD.

        The call is signed for at most once. Raises `PaymentDeclined` before signing,
        `PaymentRefused`, or `PaymentUnresolved` with the `payment` to pass to another `pay`.
        """
        return self.run(pay_steps(self.core, url, payer, max_price, payment, options))

    def verify_decision(
        self, token: str, *, audience: str, issuer: str | None = None
    ) -> DecisionClaims:
        """Verify a decision token offline, with cached keys; raises `InvalidToken`."""
        return self.run(self._verifier.verify(token, audience, issuer))

    def verify_receipt(
        self,
        receipt: str,
        *,
        request: bytes | None = None,
        response: bytes | None = None,
        issuer: str | None = None,
    ) -> ReceiptClaims:
        """Verify the receipt of a paid call offline, with cached keys; raises `InvalidToken`.

        It is the header `x-assay-receipt`. `request` and `response` are the bodies as they were
        sent: those that are given must be the receipt's.
        """
        return self.run(
            self._verifier.verify_receipt(
                receipt, request=request, response=response, issuer=issuer
            )
        )


class AsyncAssay(_Client):
    """The asynchronous client, for asyncio and trio, with the operations of `Assay`.

    Use it in an `async with` block, or close it.
    """

    def __init__(self, base_url: str, **options: Unpack[ClientOptions]) -> None:
        super().__init__(base_url, **options)
        self._http = httpx2.AsyncClient(**self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        """Carry out the steps of an operation and return its result; never blocks the loop."""
        reply: Any = None
        failure: AssayError | None = None
        while True:
            try:
                step = steps.send(reply) if failure is None else steps.throw(failure)
            except StopIteration as done:
                return done.value
            reply = failure = None
            if isinstance(step, Wait):
                await anyio.sleep(step.seconds)
            elif isinstance(step, Run):
                reply = await anyio.to_thread.run_sync(step.call)
            else:
                reply = await self._send(step)
                if isinstance(reply, AssayError):
                    reply, failure = None, reply

    async def _send(self, request: Send) -> Received | AssayError:
        body = bytearray()
        try:
            with anyio.fail_after(self._timeout_s):
                async with self._http.stream(**self._arguments(request)) as response:
                    async for chunk in response.aiter_raw():
                        self._add(body, chunk)
            return self._received(request, response, body)
        except (httpx2.TransportError, httpx2.StreamError, TimeoutError) as error:
            return _failure(error)
        except UnexpectedResponse as error:
            return error

    async def gate(self, agent_id: str, **options: Unpack[GateOptions]) -> Decision:
        """Ask whether the agent may pass; a denial is a `Decision` with `allow` false."""
        return await self.run(gate_steps(self.core, agent_id, options))

    async def profile(self, agent_id: str, *, chain: str | None = None) -> Profile:
        """Fetch the trust profile of a registered agent."""
        return await self.run(profile_steps(self.core, agent_id, chain))

    async def evaluate(self, agent_id: str, *, chain: str | None = None) -> Evaluation:
        """Evaluate an agent, or the key agent of an address, now; takes up to 25 s."""
        return await self.run(evaluate_steps(self.core, agent_id, chain))

    async def wrappers(self) -> list[Wrapper]:
        """List the operator's wrappers, newest first, inactive ones included."""
        return await self.run(wrappers_steps(self.core))

    async def create_wrapper(self, **options: Unpack[WrapperOptions]) -> Wrapper:
        """Create a wrapper; it answers at once. `path` and `price_per_call` are required."""
        return await self.run(create_wrapper_steps(self.core, **options))

    async def update_wrapper(
        self, wrapper_id: str, *, revision: int | None = None, **options: Unpack[WrapperOptions]
    ) -> Wrapper:
        """Change the members that are given; raises `Conflict` if `revision` is not the newest."""
        steps = update_wrapper_steps(self.core, wrapper_id, revision, **options)
        return await self.run(steps)

    async def delete_wrapper(self, wrapper_id: str) -> None:
        """Deactivate a wrapper at once."""
        await self.run(delete_wrapper_steps(self.core, wrapper_id))

    async def me(self) -> Account:
        """Fetch the account and its allowance; needs the dashboard `token`."""
        return await self.run(me_steps(self.core))

    async def open_session(self, session: AgentSession) -> AgentSession:
        """Prove an agent's address: challenge, signature, session. Returns the same object."""
        return await self.run(open_session_steps(self.core, session))

    async def pay(
        self,
        url: str,
        payer: Payer,
        *,
        max_price: Decimal | str,
        payment: Payment | None = None,
        **options: Unpack[PayOptions],
    ) -> PaidResponse:
        """Call a URL, and pay its 402 over x402 or MPP if it asks for at most `max_price` USD.

        The call is signed for at most once. Raises `PaymentDeclined` before signing,
        `PaymentRefused`, or `PaymentUnresolved` with the `payment` to pass to another `pay`.
        """
        return await self.run(pay_steps(self.core, url, payer, max_price, payment, options))

    async def verify_decision(
        self, token: str, *, audience: str, issuer: str | None = None
    ) -> DecisionClaims:
        """Verify a decision token offline, with cached keys; raises `InvalidToken`."""
        return await self.run(self._verifier.verify(token, audience, issuer))

    async def verify_receipt(
        self,
        receipt: str,
        *,
        request: bytes | None = None,
        response: bytes | None = None,
        issuer: str | None = None,
    ) -> ReceiptClaims:
        """Verify the receipt of a paid call offline, with cached keys; raises `InvalidToken`.

        It is the header `x-assay-receipt`. `request` and `response` are the bodies as they were
        sent: those that are given must be the receipt's.
        """
        return await self.run(
            self._verifier.verify_receipt(
                receipt, request=request, response=response, issuer=issuer
            )
        )
