"""On-chain evidence for an agent besides its customers: validators' answers, and a stake.

Both are read at evaluation, and only if the operator configures them. The agent's controller
chooses which validations are requested, and when: so of each validator on the operator's list the
newest answers count, and an agent whose answers cannot all be read has none. Source: EIP-8004,
"Validation Registry"; ADR 0041.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer, address_word, counted, word
from assay.chains.model import Network, is_address
from assay.chains.rpc import ContractCall, Returned, Reverted, Rpc
from assay.common.clock import Clock
from assay.registries.model import OnchainAgent
from assay.reputation.model import PaymentChain

VALIDATIONS_MAX: Final = 300
"""Validations read of one agent; if it has more, none count."""

VALID_DAYS: Final = 365
"""How long an answer counts."""

_DAY_S = 86_400
_STATUS_WORDS = 6
_SELECTOR_CHARS = 10


@dataclass(frozen=True, slots=True)
class Stake:
    """A contract that holds a listed asset, and the function that returns an agent's amount.

    `function` takes one word, the agent's owner or its id, and returns the amount first.
    """

    network: Network
    contract: str
    function: bytes
    by_owner: bool
    asset: str
    decimals: int


@dataclass(frozen=True, slots=True)
class VoucherRules:
    """The operator's configuration: registries by network, trusted validators, and stakes."""

    registries: Mapping[str, str]
    validators: frozenset[str]
    stakes: Sequence[Stake] = ()


def stake_of(
    row: Mapping[str, object], networks: Mapping[str, Network], chains: Mapping[str, PaymentChain]
) -> Stake:
    """Parse a configured stake; raises `ValueError` with a plain sentence."""
    if unknown := sorted(row.keys() - {"chain", "contract", "function", "of", "asset"}):
        raise ValueError(f"a stake has an unknown member {unknown[0]!r}")
    slug, contract, asset = (str(row.get(name)) for name in ("chain", "contract", "asset"))
    function, of = str(row.get("function")), row.get("of")
    network = networks.get(slug)
    if network is None or network.family != "evm":
        raise ValueError(f"a stake names the unknown chain {slug!r}")
    if not is_address(contract):
        raise ValueError("a stake needs `contract`, the address that holds the money")
    try:
        selector = bytes.fromhex(function.removeprefix("0x"))
    except ValueError:
        selector = b""
    if len(function) != _SELECTOR_CHARS or len(selector) != 4:  # noqa: PLR2004 - as the ABI has it
        raise ValueError("a stake needs `function`, 0x and the 8 digits of a view function")
    if of not in {"owner", "agentId"}:
        raise ValueError("a stake needs `of`: owner or agentId")
    listed = [
        one
        for chain in chains.values()
        if chain.network.chain_id == network.chain_id
        for one in chain.assets
        if one.address.lower() == asset.lower()
    ]
    if not listed:
        raise ValueError(f"a stake's asset {asset!r} is not one that is listed for {slug}")
    balance = (contract.lower(), selector, of == "owner", asset.lower(), listed[0].decimals)
    return Stake(network, *balance)


class Vouchers:
    """Reads validations and stakes from the chain."""

    def __init__(self, rpc: Rpc, rules: VoucherRules, clock: Clock) -> None:
        self._rpc = rpc
        self._rules = rules
        self._clock = clock

    async def validations(self, agent: OnchainAgent) -> tuple[tuple[str, int], ...]:
        """Return listed validators and the current answer of each, 0 to 100.

        The answer is the lowest of a validator's newest answers by tag. Answers that a contract
        refuses or garbles do not count. Raises `ChainUnavailable`.
        """
        registry = self._rules.registries.get(agent.network.slug)
        if registry is None or not self._rules.validators:
            return ()
        try:
            return await self._answers(agent, registry)
        except BadAnswer:
            return ()

    async def staked(self, agent: OnchainAgent) -> int:
        """Return the agent's stake, in millionths of a dollar. Raises `ChainUnavailable`.

        An owner's stake is divided among the agents that it owns.
        """
        total = 0
        for stake in self._rules.stakes:
            if stake.network.chain_id == agent.network.chain_id:
                try:
                    total += await self._of(stake, agent)
                except BadAnswer:
                    continue
        return total

    async def _answers(self, agent: OnchainAgent, registry: str) -> tuple[tuple[str, int], ...]:
        number, network = word(int(agent.agent_id)), agent.network
        asked = ContractCall(registry, bytes.fromhex("8d5d0c2d") + number)
        (listed,) = await self._rpc.call(network, [asked])
        reader = AbiReader(_data(listed))
        places = reader.items(reader.number(0))
        if len(places) > VALIDATIONS_MAX:
            return ()
        hashes = [word(reader.number(at)) for at in places]
        found = await self._rpc.call(
            network, [ContractCall(registry, bytes.fromhex("ff2febfc") + one) for one in hashes]
        )
        statuses = [_status(_data(one)) for one in found]
        side = agent.controllers
        mine = sorted(
            {s.validator for s in statuses if s.agent_id == int(agent.agent_id)}
            & (self._rules.validators - side)
        )
        counts = await self._rpc.call(
            network, [_summary(registry, agent.agent_id, who) for who in mine]
        )
        now_s = int(self._clock.now().timestamp())
        answers: list[tuple[str, int]] = []
        for who, count in zip(mine, counts, strict=True):
            given = [s for s in statuses if s.validator == who and s.is_answered]
            # An answer of 0 without a hash or a tag looks like none: the registry's own count shows
            # that there is one, but not which it is.
            if AbiReader(_data(count)).number(0, 64) != len(given):
                answers.append((who, 0))
            elif (value := _value(given, now_s)) is not None:
                answers.append((who, value))
        return tuple(answers)

    async def _of(self, stake: Stake, agent: OnchainAgent) -> int:
        whom = address_word(agent.owner) if stake.by_owner else word(int(agent.agent_id))
        balance_of = bytes.fromhex("70a08231")
        amount, balance, owned = await self._rpc.call(
            agent.network,
            [
                ContractCall(stake.contract, stake.function + whom),
                ContractCall(stake.asset, balance_of + address_word(stake.contract)),
                ContractCall(
                    agent.network.identity_registry, balance_of + address_word(agent.owner)
                ),
            ],
        )
        staked = min(AbiReader(_data(amount)).number(0), AbiReader(_data(balance)).number(0))
        if stake.by_owner:
            staked //= max(1, AbiReader(_data(owned)).number(0))
        return min(staked * 10**6 // 10**stake.decimals, 2**62)


@dataclass(frozen=True, slots=True)
class _Status:
    validator: str
    agent_id: int
    response: int
    digest: bytes
    tag: bytes
    at_s: int

    @property
    def is_answered(self) -> bool:
        """Return whether the validator has certainly answered."""
        return bool(self.response or any(self.digest) or self.tag)


def _status(data: bytes) -> _Status:
    reader = AbiReader(data)
    return _Status(
        validator=reader.address(0),
        agent_id=reader.number(WORD),
        response=min(100, reader.number(2 * WORD, 8)),
        digest=data[3 * WORD : 4 * WORD],
        tag=reader.content(reader.number(4 * WORD)),
        at_s=reader.number((_STATUS_WORDS - 1) * WORD, 64),
    )


def _summary(registry: str, agent_id: str, validator: str) -> ContractCall:
    """Call `getSummary(id, [validator], "")`: the number of answers, and their mean."""
    names = word(1) + address_word(validator)
    head = 3 * WORD
    return ContractCall(
        registry,
        bytes.fromhex("1b7cabd6")
        + word(int(agent_id))
        + word(head)
        + word(head + len(names))
        + names
        + counted(b""),
    )


def _value(given: Sequence[_Status], now_s: int) -> int | None:
    """Return the lowest of the newest answers by tag that are not too old."""
    newest: dict[bytes, _Status] = {}
    for one in sorted(given, key=lambda s: (s.at_s, -s.response)):
        newest[one.tag] = one
    fresh = [one.response for one in newest.values() if one.at_s > now_s - VALID_DAYS * _DAY_S]
    return min(fresh, default=None)


def _data(answer: Returned | Reverted) -> bytes:
    if isinstance(answer, Reverted):
        raise BadAnswer("the contract refused")
    return answer.data


def validation_registries(
    given: Mapping[str, str], networks: Mapping[str, Network]
) -> Mapping[str, str]:
    """Return registries by network; raises `ValueError` with a plain sentence."""
    for slug, address in given.items():
        if slug not in networks or networks[slug].family != "evm":
            raise ValueError(f"it names the unknown chain {slug!r}")
        if not is_address(address):
            raise ValueError(f"{address!r} is no address")
    return {slug: address.lower() for slug, address in given.items()}
