"""What `assay sell` says that a payment has moved, and has cost."""

from typing import Any

from assay.app.payments import TRANSFERRED, TransactionTransfer, Wallets
from assay.chains.evm.abi import address_word, word
from assay.payments.networks import ROWS

NETWORK = next(row for row in ROWS if row.id == "eip155:8453")
PAYER, SELLER = "0x" + "aa" * 20, "0x" + "bb" * 20


class Shows:
    """A node with one receipt."""

    def __init__(self, receipt: Any) -> None:
        self.receipt = receipt

    async def request(self, *_asked: Any) -> Any:
        return self.receipt


async def test_the_gas_of_a_sale_has_what_the_chain_takes_for_ethereum_in_it() -> None:
    topics = [TRANSFERRED, *("0x" + address_word(one).hex() for one in (PAYER, SELLER))]
    log = {"address": NETWORK.asset.address, "topics": topics, "data": "0x" + word(10_000).hex()}
    receipt = {
        "status": "0x1",
        "blockNumber": "0x10",
        "gasUsed": hex(62_432),
        "effectiveGasPrice": hex(10**7),
        "l1Fee": hex(10**12),
        "logs": [log],
    }
    rpc: Any = Shows(receipt)
    moved = await Wallets(rpc, NETWORK).moved("0x" + "11" * 32, PAYER, SELLER)
    assert moved == TransactionTransfer(amount=10_000, block=16, fee_wei=62_432 * 10**7 + 10**12)
