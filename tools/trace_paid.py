"""Prints which files a paid x402 call runs, and how often it goes from one file to another.

./.venv/bin/python tools/trace_paid.py [-v]

A call of a wrapper that costs something is made twice, so that everything is loaded; the second is
counted, until its answer is there. With `-v` also the functions of each file. The budgets stand in
ADR 0044; the second figure is of the same call without what all calls run (`db`, `http1`, ...).
"""

import asyncio
import base64
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/assay"
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from assay_demo.chain import dollars  # noqa: E402 - the tests' tools lie beside this folder
from assay_demo.chain.accounts import ACCOUNTS  # noqa: E402
from tests.support.live_service import TestService, start_test_service  # noqa: E402
from tests.support.shop import ENGINE, NETWORK, SELLER, dollars_on  # noqa: E402
from tests.support.wire_upstream import wire_upstream  # noqa: E402

PAYER = ACCOUNTS[5]
OF_PAYMENTS = ("payments/", "wrappers/")


@dataclass(slots=True)
class Trace:
    """The functions of the package that ran, in their order, as (file, name)."""

    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def files(self) -> Mapping[str, list[str]]:
        """Each file with its functions, in the order of the first run."""
        found: dict[str, dict[str, None]] = {}
        for file, name in self.calls:
            found.setdefault(file, {})[name] = None
        return {file: list(names) for file, names in found.items()}

    @property
    def switches(self) -> int:
        """How often the next function is of another file."""
        return sum(before != after for (before, _), (after, _) in pairwise(self.calls))

    def within(self, folders: tuple[str, ...]) -> "Trace":
        """What ran in these folders."""
        return Trace([one for one in self.calls if one[0].startswith(folders)])


@contextmanager
def tracing() -> Iterator[Trace]:
    """Notes what this thread runs meanwhile."""
    trace = Trace()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{PACKAGE}/"):
            file = code.co_filename.removeprefix(f"{PACKAGE}/")
            trace.calls.append((file, getattr(code, "co_qualname", code.co_name)))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield trace
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


async def signed(service: TestService, path: str) -> dict[str, str]:
    """The header of a payment for what that path costs."""
    demand = await service.http.get(path)
    accepted = json.loads(base64.b64decode(demand.headers["payment-required"]))["accepts"][0]
    payload = dollars.authorize(PAYER.key, accepted, int(NETWORK.partition(":")[2]))
    said = {"x402Version": 2, "accepted": accepted, "payload": payload}
    return {"payment-signature": base64.b64encode(json.dumps(said).encode()).decode()}


async def trace_paid_call(folder: Path) -> Trace:
    """The trace of a call that is settled with a key of ours after its upstream has answered."""
    with dollars_on(NETWORK) as chain, wire_upstream() as upstream:
        chain.mint(PAYER.address, 10**9)
        async with start_test_service(
            folder,
            payment_rpc={NETWORK: [chain.url]},
            x402_private_key=ENGINE.key,
            payout_address=SELLER.address,
        ) as service:
            return await _traced(service, upstream.url)


async def _traced(service: TestService, target: str) -> Trace:
    service.clock.move(
        time.time() - service.clock.now().timestamp()
    )  # the chain's is the machine's
    await service.operator()
    token = await service.token()
    me = (await service.http.get("/operator/me", headers=token)).json()
    sold = {"path": "/paid", "pricePerCall": 0.01, "targetUrl": target, "paymentNetwork": NETWORK}
    made = await service.http.post("/operator/endpoints", json=sold, headers=token)
    made.raise_for_status()
    path = f"/wrap/{me['operator']['id']}/paid"
    (await service.http.get(path, headers=await signed(service, path))).raise_for_status()
    headers = await signed(service, path)
    await asyncio.sleep(1.2)  # until what the first call has left to write is written
    with tracing() as trace:
        answer = await service.http.get(path, headers=headers)
    answer.raise_for_status()
    return trace


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        trace = asyncio.run(trace_paid_call(Path(folder) / "data"))
    for name, one in (("all", trace), ("payments, wrappers", trace.within(OF_PAYMENTS))):
        print(f"{name}: {len(one.files)} files, {one.switches} switches, {len(one.calls)} calls")  # noqa: T201
    for file, names in trace.files.items():
        print(f"  {file}" + (f": {', '.join(names)}" if "-v" in sys.argv else ""))  # noqa: T201


if __name__ == "__main__":
    main()
