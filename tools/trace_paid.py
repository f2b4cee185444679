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
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from assay_demo.chain import dollars  # noqa: E402 - the tests' tools lie beside this folder
from assay_demo.chain.accounts import ACCOUNTS  # noqa: E402
from tests.support.live_service import TestService, start_test_service  # noqa: E402
from tests.support.shop import ENGINE, NETWORK, SELLER, dollars_on  # noqa: E402
from tests.support.tracing import Trace, tracing  # noqa: E402
from tests.support.wire_upstream import wire_upstream  # noqa: E402

PAYER = ACCOUNTS[5]
OF_PAYMENTS = ("payments/", "wrappers/")


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
    with tracing(new_threads=True) as trace:
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
