"""The model of a chain keeps the rules that settlements depend on."""

from random import Random

import pytest

from assay.chains.evm.signing import EvmTransaction
from assay.payments.ports import Authorization
from assay.payments.x402.eip3009 import transfer_data
from tests.simulation.chain import (
    GWEI,
    NETWORK,
    TRANSFER_GAS,
    Action,
    Cancel,
    Chain,
    Pending,
    Refused,
    Send,
    SettlementKey,
    signature_of,
    signed_authorization,
)

PAYER, PAYEE, KEY = "0x" + "c0" * 20, "0x" + "5e" * 20, "0x" + "0e" * 20
NOW_S = 1_800_000_000.0


def authorization(nonce: int = 1, value: int = 10) -> Authorization:
    unsigned = Authorization(PAYER, PAYEE, value, 0, int(NOW_S) + 60, f"0x{nonce:064x}", "")
    return signed_authorization(unsigned)


@pytest.fixture
def chain() -> Chain:
    made = Chain(Random(0), lambda: NOW_S)
    made.fund(PAYER, 100)
    made.fund_gas(KEY, 10**18)
    return made


def sent(nonce: int, action: Action, fee: int = 20 * GWEI, tip: int = GWEI) -> Pending:
    return Pending(f"0x{nonce:032x}{fee:032x}", KEY, nonce, fee, tip, 200_000, action)


def test_an_authorisation_moves_its_money_once(chain: Chain) -> None:
    chain.submit(sent(0, authorization()))
    chain.submit(sent(1, authorization()))
    chain.mine()
    assert chain.state.balances[PAYEE] == 10
    assert chain.receipt(sent(0, None).hash)["status"] == "0x1"  # type: ignore[index]
    assert chain.receipt(sent(1, None).hash)["status"] == "0x0"  # type: ignore[index]


@pytest.mark.parametrize(
    ("before", "moved"),
    [
        (Cancel(PAYER, authorization().nonce), 0),
        (Send(PAYER, "0x" + "e1" * 20, 95), 0),
        (Send(PAYER, "0x" + "e1" * 20, 90), 10),
        (authorization(), 10),
    ],
)
def test_who_is_first_decides(chain: Chain, before: Action, moved: int) -> None:
    chain.submit_plain(PAYER, before)
    chain.mine()
    chain.submit(sent(0, authorization()))
    chain.mine()
    assert chain.state.balances.get(PAYEE, 0) == moved


def test_nonces_are_taken_in_their_order(chain: Chain) -> None:
    chain.submit(sent(1, authorization(2)))
    chain.mine()
    assert PAYEE not in chain.state.balances
    chain.submit(sent(0, authorization(1)))
    assert chain.pending_nonce(KEY) == 2
    chain.mine()
    assert chain.state.balances[PAYEE] == 20
    with pytest.raises(Refused, match="nonce too low"):
        chain.submit(sent(0, authorization(3)))


def test_a_replacement_pays_a_tenth_more(chain: Chain) -> None:
    chain.submit(sent(0, authorization(1)))
    with pytest.raises(Refused, match="already known"):
        chain.submit(sent(0, authorization(1)))
    with pytest.raises(Refused, match="underpriced"):
        chain.submit(sent(0, authorization(2), fee=21 * GWEI, tip=2 * GWEI))
    chain.submit(sent(0, authorization(2), fee=22 * GWEI, tip=2 * GWEI))
    chain.mine()
    assert set(chain.state.used) == {(PAYER, authorization(2).nonce)}


def test_who_does_not_pay_the_base_fee_waits(chain: Chain) -> None:
    chain.base_fee = 30 * GWEI
    chain.submit(sent(0, authorization()))
    chain.mine()
    assert PAYEE not in chain.state.balances
    chain.base_fee = 3 * GWEI
    chain.mine()
    assert chain.state.balances[PAYEE] == 10
    assert chain.state.coins[KEY] == 10**18 - TRANSFER_GAS * 4 * GWEI


def test_a_key_without_gas_is_refused(chain: Chain) -> None:
    chain.state.coins[KEY] = 1
    with pytest.raises(Refused, match="insufficient funds"):
        chain.submit(sent(0, authorization()))


@pytest.mark.parametrize("depth", range(1, 11))
def test_a_reorganisation_takes_blocks_and_money_back(chain: Chain, depth: int) -> None:
    for _ in range(12 - depth):
        chain.mine()
    chain.submit(sent(0, authorization()))
    for _ in range(depth):
        chain.mine()
    gone = chain.blocks[-depth:]
    assert chain.state.balances[PAYEE] == 10
    chain.reorganise(depth, kept=0.0)
    assert chain.state.balances.get(PAYEE, 0) == 0
    assert chain.state.nonces.get(KEY, 0) == 0
    assert chain.receipt(sent(0, None).hash) is None
    assert not {block.hash for block in gone} & {block.hash for block in chain.blocks}
    assert chain.head.number == gone[-1].number + 1
    assert chain.unwound == {(PAYER, authorization().nonce)}


def test_a_reorganisation_may_bring_the_same_money_back(chain: Chain) -> None:
    chain.submit(sent(0, authorization()))
    chain.mine()
    chain.reorganise(1, kept=1.0)
    assert chain.state.balances[PAYEE] == 10
    assert not chain.unwound


def test_the_cheap_key_signs_what_the_model_reads() -> None:
    key, signed = SettlementKey(KEY), authorization()
    data = transfer_data(signed)
    transaction = EvmTransaction(NETWORK.chain_id, 3, 1, 2, 200_000, NETWORK.asset.address, data)
    raw, hash_ = key.sign(transaction)
    found = key.signed[raw]
    assert found.action == signed
    assert (found.hash, found.sender, found.nonce) == (hash_, KEY, 3)
    assert signed.signature == signature_of(signed)


def test_what_is_mined_again_at_another_price_has_cost_either(chain: Chain) -> None:
    chain.submit(sent(0, authorization()))
    chain.mine()
    chain.base_fee = 15 * GWEI
    chain.reorganise(1, 1.0)
    costs = {TRANSFER_GAS * gwei * GWEI for gwei in (11, 16)}
    assert chain.ever_burnt == {sent(0, None).hash: costs}
    assert chain.unwound == set()
