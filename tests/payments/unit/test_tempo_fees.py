"""What a Tempo transaction says of its fees, and what is assumed where it says nothing."""

from collections.abc import Sequence
from typing import Any

import pytest
import rlp

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted
from assay.payments.model import Fees, PaymentRefused, PaymentsUnavailable
from assay.payments.mpp.tempo import FEE_MANAGER, FEES_MAX, fees_of
from assay.payments.networks import ROWS

NETWORK = next(row for row in ROWS if row.id == "tempo:42431")
CHAIN = Network(
    slug="t",
    name="t",
    chain_id=42431,
    testnet=True,
    identity_registry=FEE_MANAGER,
    reputation_registry=FEE_MANAGER,
    rpc_urls=("http://node",),
    source="a test",
)
PAYER = "0x" + "aa" * 20
TOKEN = "0x20c0000000000000000000000000000000000001"
BASE_UNIT = 10**12


class Answering:
    """A node that knows which token the payer has chosen."""

    def __init__(self, answer: Returned | Reverted | ChainUnavailable) -> None:
        self.answer = answer
        self.asked: list[ContractCall] = []

    async def call_newest(self, network: Network, calls: Sequence[ContractCall]) -> list[Any]:
        assert network is CHAIN
        self.asked += calls
        if isinstance(self.answer, ChainUnavailable):
            raise self.answer
        return [self.answer]


NOBODY = Answering(ChainUnavailable("not to be asked"))


def chosen(token: str) -> Answering:
    return Answering(Returned(bytes(12) + bytes.fromhex(token[2:])))


def raw(
    price: int = BASE_UNIT,
    gas: int = 10,
    token: bytes = b"",
    sponsor: Any = b"",
    kind: int = 0x76,
) -> str:
    fields = [42431, 1, price, gas, [], [], 1, 0, 9, b"", token, sponsor, [], b"s" * 65]
    return "0x" + (bytes([kind]) + rlp.encode(fields)).hex()


async def fees(rpc: Answering, signature: object) -> Fees:
    credential: Any = {"payload": {"type": "transaction", "signature": signature}}
    return await fees_of(rpc, CHAIN, NETWORK, PAYER, credential)  # type: ignore[arg-type]


async def test_the_token_a_transaction_names_is_charged_at_most_price_times_gas() -> None:
    named = bytes.fromhex(TOKEN[2:])
    assert await fees(NOBODY, raw(token=named)) == Fees(TOKEN, 10)


@pytest.mark.parametrize(("price", "gas", "most"), [(1, 1, 1), (BASE_UNIT + 1, 1, 2), (0, 9, 0)])
async def test_a_part_of_a_base_unit_counts_as_one(price: int, gas: int, most: int) -> None:
    named = bytes.fromhex(TOKEN[2:])
    assert (await fees(NOBODY, raw(price, gas, named))).most == most


async def test_without_a_name_it_is_the_token_the_payer_has_chosen() -> None:
    node = chosen(TOKEN)
    assert await fees(node, raw()) == Fees(TOKEN, 10)
    (asked,) = node.asked
    assert asked.to == FEE_MANAGER
    assert asked.data.endswith(bytes.fromhex(PAYER[2:]))


@pytest.mark.parametrize("node", [chosen("0x" + "00" * 20), Answering(Reverted(b"", "no"))])
async def test_without_a_choice_it_is_the_token_that_is_paid_with(node: Answering) -> None:
    assert await fees(node, raw()) == Fees(NETWORK.asset.address, 10)


async def test_whether_there_is_a_choice_must_be_known() -> None:
    for node in (NOBODY, Answering(Returned(b"short"))):
        with pytest.raises(PaymentsUnavailable):
            await fees(node, raw())


async def test_what_nobody_has_is_bounded() -> None:
    named = bytes.fromhex(TOKEN[2:])
    assert (await fees(NOBODY, raw(2**255, 2**63, named))).most == FEES_MAX


@pytest.mark.parametrize(
    "signature",
    [
        raw(sponsor=b"\0"),
        raw(sponsor=[0, 1, 2]),
        raw(kind=0x78),
        raw(kind=0x02),
        "0x76",
        "0x",
        "no hex",
        None,
        7,
        "0x76" + rlp.encode([1, 2]).hex(),
        "0x76" + rlp.encode([1, 2, [3], 4, [], [], 1, 0, 9, b"", b"", b"", []]).hex(),
    ],
)
async def test_fees_that_are_not_the_payers_own_or_cannot_be_read_are_refused(
    signature: object,
) -> None:
    with pytest.raises(PaymentRefused):
        await fees(NOBODY, signature)
