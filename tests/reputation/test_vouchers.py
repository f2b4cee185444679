"""Validators' answers and stakes, from contracts on a local chain."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from eth_abi.abi import encode
from typing_extensions import override

from assay.common.clock import SystemClock
from assay.common.numbers import MICRO
from assay.evaluation.demands import LadderPolicy
from assay.evaluation.ladder import place
from assay.registries.model import OnchainAgent
from assay.reputation.agent_facts import IndexedFacts
from assay.reputation.evidence import evidence_of
from assay.reputation.vouchers import (
    Stake,
    VoucherRules,
    Vouchers,
    stake_of,
    validation_registries,
)
from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.dollars import mint
from assay_demo.chain.registries import register, selector
from tests.reputation.test_reputation_reading import (
    DOLLAR,
    MINTER,
    OWNER,
    Later,
    Shop,
    money,
    shop,
)
from tests.support.evidence import HERE, deploy_source

pytestmark = pytest.mark.slow

__all__ = ["money", "shop"]

VALIDATOR, STRANGER = ACCOUNTS[5], ACCOUNTS[6]


def source(name: str) -> str:
    return (Path(HERE) / f"{name}.vy").read_text("utf-8")


@dataclass
class Registry:
    """A validation registry, and the shop's agent asking validators."""

    shop: Shop
    address: str

    def ask(self, number: int, validator: str = VALIDATOR.address, key: str = OWNER.key) -> bytes:
        digest = number.to_bytes(32, "big")
        types = ["address", "uint256", "string", "bytes32"]
        values = [validator, int(self.shop.agent.agent_id), "", digest]
        name = "validationRequest(address,uint256,string,bytes32)"
        self.shop.chain.wallet.send(key, self.address, selector(name) + encode(types, values))
        return digest

    def answer(self, digest: bytes, value: int, *, tag: str = "", key: str = VALIDATOR.key) -> None:
        types = ["bytes32", "uint8", "string", "bytes32", "string"]
        values = [digest, value, "", bytes(32), tag]
        name = "validationResponse(bytes32,uint8,string,bytes32,string)"
        self.shop.chain.wallet.send(key, self.address, selector(name) + encode(types, values))

    def vouchers(self, *validators: str, clock: SystemClock | None = None) -> Vouchers:
        rules = VoucherRules({"local": self.address}, frozenset(validators))
        return Vouchers(self.shop.rpc, rules, clock or SystemClock())

    async def read(self, *validators: str) -> dict[str, int]:
        found = self.vouchers(*(validators or (VALIDATOR.address,)))
        return dict(await found.validations(self.shop.agent))


@pytest.fixture
def registry(shop: Shop) -> Registry:
    arguments = encode(["address"], [shop.chain.registries.identity])
    code = source("ValidationRegistry")
    return Registry(shop, deploy_source(shop.chain.wallet, MINTER, code, arguments))


async def test_the_newest_answer_of_a_listed_validator_counts(registry: Registry) -> None:
    assert await registry.read() == {}
    first = registry.ask(1)
    assert await registry.read() == {}
    registry.answer(first, 95)
    assert await registry.read() == {VALIDATOR.address: 95}
    second = registry.ask(2)
    assert await registry.read() == {VALIDATOR.address: 95}
    registry.answer(second, 20)
    assert await registry.read() == {VALIDATOR.address: 20}
    registry.answer(second, 90)
    assert await registry.read() == {VALIDATOR.address: 90}


async def test_another_tag_s_praise_hides_no_low_answer(registry: Registry) -> None:
    one, two = registry.ask(1), registry.ask(2)
    registry.answer(one, 10, tag="security")
    registry.answer(two, 99, tag="style")
    assert await registry.read() == {VALIDATOR.address: 10}


async def test_an_answer_of_0_that_looks_like_none_counts_as_0(registry: Registry) -> None:
    one, two = registry.ask(1), registry.ask(2)
    registry.answer(one, 95)
    registry.answer(two, 0)
    assert await registry.read() == {VALIDATOR.address: 0}


async def test_validators_that_are_not_listed_or_are_the_agent_itself_do_not_count(
    registry: Registry,
) -> None:
    registry.answer(registry.ask(1, STRANGER.address), 100, key=STRANGER.key)
    registry.answer(registry.ask(2, OWNER.address), 100, key=OWNER.key)
    assert await registry.read(VALIDATOR.address, OWNER.address) == {}
    assert await registry.read(VALIDATOR.address, STRANGER.address) == {STRANGER.address: 100}


async def test_old_answers_and_answers_that_are_too_many_do_not_count(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.answer(registry.ask(1), 95)

    class NextYear(Later):
        @override
        def now(self) -> datetime:
            return super().now() + timedelta(days=365)

    later = registry.vouchers(VALIDATOR.address, clock=NextYear())
    assert await later.validations(registry.shop.agent) == ()
    assert await registry.read() == {VALIDATOR.address: 95}
    monkeypatch.setattr("assay.reputation.vouchers.VALIDATIONS_MAX", 2)
    registry.ask(2, STRANGER.address)
    assert await registry.read() == {VALIDATOR.address: 95}
    registry.ask(3, STRANGER.address)
    assert await registry.read() == {}


async def test_a_registry_that_is_none_vouches_for_nobody(shop: Shop) -> None:
    for address in (DOLLAR, "0x" + "12" * 20, shop.chain.registries.identity):
        rules = VoucherRules({"local": address}, frozenset({VALIDATOR.address}))
        assert await Vouchers(shop.rpc, rules, SystemClock()).validations(shop.agent) == ()


@dataclass
class Staked:
    """A contract of stakes, and who staked what."""

    shop: Shop
    address: str

    def stake(self, usd: int, agent: OnchainAgent | None = None) -> None:
        wallet, who = self.shop.chain.wallet, agent or self.shop.agent
        mint(wallet, MINTER, DOLLAR, OWNER.address, usd * MICRO)
        approve = encode(["address", "uint256"], [self.address, usd * MICRO])
        wallet.send(OWNER.key, DOLLAR, selector("approve(address,uint256)") + approve)
        values = [who.owner, int(who.agent_id), usd * MICRO]
        data = encode(["address", "uint256", "uint256"], values)
        wallet.send(OWNER.key, self.address, selector("stake(address,uint256,uint256)") + data)

    def slash(self) -> None:
        agent = self.shop.agent
        data = encode(["address", "uint256"], [agent.owner, int(agent.agent_id)])
        self.shop.chain.wallet.send(MINTER, self.address, selector("slash(address,uint256)") + data)

    def row(self, function: str, of: str) -> dict[str, object]:
        return {
            "chain": "local",
            "contract": self.address,
            "function": "0x" + selector(function).hex(),
            "of": of,
            "asset": DOLLAR,
        }

    def vouchers(self, function: str = "stakeFor(uint256)", of: str = "agentId") -> Vouchers:
        networks, chains = {"local": self.shop.agent.network}, self.shop.payments
        stake = stake_of(self.row(function, of), networks, chains)
        return Vouchers(self.shop.rpc, VoucherRules({}, frozenset(), [stake]), SystemClock())


@pytest.fixture
def staked(shop: Shop) -> Staked:
    arguments = encode(["address"], [DOLLAR])
    code = source("Staking")
    return Staked(shop, deploy_source(shop.chain.wallet, MINTER, code, arguments))


async def test_a_stake_counts_while_it_is_there(staked: Staked) -> None:
    agent, vouchers = staked.shop.agent, staked.vouchers()
    assert await vouchers.staked(agent) == 0
    staked.stake(600)
    assert await vouchers.staked(agent) == 600 * MICRO
    staked.slash()
    assert await vouchers.staked(agent) == 0


async def test_a_stake_of_an_owner_is_shared_out_among_its_agents(staked: Staked) -> None:
    """One stake does not vouch for a crowd."""
    agent, chain = staked.shop.agent, staked.shop.chain
    staked.stake(600)
    vouchers = staked.vouchers("stakeOf(address)", "owner")
    before = await vouchers.staked(agent)
    register(chain.wallet, chain.registries, OWNER.key, "")
    owned = 600 * MICRO // before
    assert await vouchers.staked(agent) == 600 * MICRO // (owned + 1)


async def test_a_contract_has_no_more_to_lose_than_it_holds(staked: Staked) -> None:
    staked.stake(7)
    liar = staked.vouchers("claimed(address)", "owner")
    assert 0 < await liar.staked(staked.shop.agent) <= 7 * MICRO
    nobody = staked.vouchers("slash(address,uint256)", "agentId")
    assert await nobody.staked(staked.shop.agent) == 0


async def test_vouchers_are_evidence_and_rung_4_reads_them(
    registry: Registry, staked: Staked
) -> None:
    shop = registry.shop
    registry.answer(registry.ask(1), 85)
    staked.stake(512)
    stake = stake_of(
        staked.row("stakeFor(uint256)", "agentId"), {"local": shop.agent.network}, shop.payments
    )
    rules = VoucherRules({"local": registry.address}, frozenset({VALIDATOR.address}), [stake])
    vouchers = Vouchers(shop.rpc, rules, SystemClock())
    source = IndexedFacts(shop.rpc, shop.store, shop.payments, Later(), vouchers=vouchers)
    data = evidence_of(shop.agent, (), await source.facts(shop.agent, ()))
    assert data["validations"] == [[VALIDATOR.address, 85]]
    assert data["stake"] == {"usd": "512.000000"}

    def state(policy: LadderPolicy) -> str:
        found = place({"8004": data}, frozenset(), policy, is_key_agent=False)
        return next(d.state for d in found.demands if d.name == "vouchers")

    listed = LadderPolicy(vouched_by=(VALIDATOR.address,))
    assert state(listed) == "met"
    assert state(LadderPolicy()) == "missing"
    assert state(replace(listed, vouched_response=86)) == "missing"
    assert state(replace(listed, vouched_stake_usd=513.0)) == "missing"


@pytest.mark.parametrize(
    "change",
    [
        {"chain": "nowhere"},
        {"contract": "0x12"},
        {"function": "stakeFor(uint256)"},
        {"function": "0x12"},
        {"of": "wallet"},
        {"asset": "0x" + "12" * 20},
        {"decimals": 6},
    ],
)
def test_a_stake_that_cannot_be_read_is_refused_at_the_start(
    shop: Shop, change: dict[str, object]
) -> None:
    row = Staked(shop, "0x" + "34" * 20).row("stakeFor(uint256)", "agentId")
    networks = {"local": shop.agent.network}
    stake = stake_of(row, networks, shop.payments)
    assert isinstance(stake, Stake)
    with pytest.raises(ValueError, match="a stake"):
        stake_of(row | change, networks, shop.payments)


def test_validation_registries_are_checked_at_the_start(shop: Shop) -> None:
    networks, address = {"local": shop.agent.network}, "0x" + "AB" * 20
    assert validation_registries({"local": address}, networks) == {"local": address.lower()}
    for wrong in ({"nowhere": address}, {"local": "0x12"}):
        with pytest.raises(ValueError, match=r"unknown chain|no address"):
            validation_registries(wrong, networks)
