"""Signals about whoever stands behind an agent: wallet, Self, attestation, personhood."""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from assay.chains.model import ChainUnavailable
from assay.common.json import JsonObject
from assay.evaluation.model import (
    Attestation,
    Evidence,
    Handle,
    SignalName,
    SignalResult,
    SignalScore,
    SignalUnavailable,
)
from assay.evaluation.ports import Signal, SignalDependencies, Sources
from assay.evaluation.scoring import DEFAULT_WEIGHTS, score
from assay.evaluation.signals.attestation import SIGNAL as ATTESTATION
from assay.evaluation.signals.personhood import SIGNAL as PERSONHOOD
from assay.evaluation.signals.self_id import SIGNAL as SELF
from assay.evaluation.signals.wallet import SIGNAL as WALLET_SIGNAL
from assay.personhood.model import HumanRecord, Personhood
from assay.probing.clients.dialers import StockDialers
from assay.registries.model import Subject
from tests.probing.unit.test_probe_visiting import Scripted
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ladder import TOP
from tests.support.fakes.trust import NETWORK, WALLET, FakeChain, onchain_agent

SUBJECT = Subject(NETWORK, "7", WALLET, onchain_agent())
HUMAN = Personhood(SUBJECT.key, "7", "orb", "app/action", "0x1", FrozenClock().now())
VOUCHED = Attestation("0x1", "0x2", "base", (Handle("github", "octocat"),))


class Source:
    """Every source of evidence about people, saying one thing."""

    def __init__(self, says: Any) -> None:
        self.says = says

    async def newest(self, address: str) -> Any:
        return self._say(address)

    async def find(self, address: str) -> Any:
        return self._say(address)

    async def add(self, personhood: Personhood) -> Personhood:
        return personhood

    def _say(self, address: str) -> Any:
        assert address in {WALLET, SUBJECT.key}
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


async def heard(signal: Signal, says: Any = None, *, configured: bool = True) -> Any:
    """What the signal collects and what that weighs, or why it could not."""
    chain, source = FakeChain(), Source(says) if configured else None
    chain.down = says if isinstance(says, ChainUnavailable) else None
    needs = SignalDependencies(
        chain,
        Scripted(),
        StockDialers(),
        {},
        FrozenClock(),
        5.0,
        Sources(attestations=source, humans=source, personhoods=source),  # type: ignore[arg-type]
    )
    seen = await signal.collect(SUBJECT, needs)
    return seen if isinstance(seen, SignalUnavailable) else signal.weigh(seen, {})


@pytest.mark.parametrize("signal", [SELF, ATTESTATION])
async def test_what_cannot_be_asked_is_unavailable_and_never_zero(signal: Signal) -> None:
    down = ChainUnavailable("The chain cannot be read.")
    assert await heard(signal, down) == SignalUnavailable("The chain cannot be read.")


@pytest.mark.parametrize("signal", [SELF, ATTESTATION, PERSONHOOD])
async def test_what_is_not_configured_is_unavailable(signal: Signal) -> None:
    assert isinstance(await heard(signal, configured=False), SignalUnavailable)


@pytest.mark.parametrize(
    ("signal", "says"),
    [
        (SELF, HumanRecord(registered=False)),
        (SELF, HumanRecord(registered=True, holds=False, agents=1)),
        (ATTESTATION, None),
        (PERSONHOOD, None),
    ],
)
async def test_nothing_known_is_no_knowledge(signal: Signal, says: Any) -> None:
    weighed = await heard(signal, says)
    assert (weighed.value, weighed.confidence) == (50, 0)
    assert weighed.reasons


async def test_a_human_with_a_crowd_of_agents_vouches_less_for_each() -> None:
    one = await heard(SELF, HumanRecord(registered=True, holds=True, agents=1))
    crowd = await heard(SELF, HumanRecord(registered=True, holds=True, agents=300))
    assert one.value == 100
    assert 50 < crowd.value < 51


async def test_more_verified_profiles_are_worth_more_up_to_a_bound() -> None:
    def of(count: int) -> Attestation:
        return replace(VOUCHED, handles=(Handle("github", "octocat"),) * count)

    none, one, two, many = [(await heard(ATTESTATION, of(n))).value for n in (0, 1, 2, 50)]
    assert 50 < none < one < two == many == 100


async def test_an_orb_is_worth_more_than_a_device() -> None:
    device = await heard(PERSONHOOD, replace(HUMAN, level="device"))
    assert 50 < device.value < (await heard(PERSONHOOD, HUMAN)).value == 100


@dataclass
class Spending:
    """An index that knows what a wallet spent."""

    micro: int | None
    asked: frozenset[str] = frozenset()

    async def spent(self, network: object, wallet: str, side: frozenset[str]) -> int | None:
        del network, wallet
        self.asked = side
        return self.micro


async def paid_others(source: Spending | None) -> SignalScore:
    """What the wallet signal makes of it; the chain itself cannot be read."""
    chain = FakeChain()
    chain.down = ChainUnavailable("The chain cannot be read.")
    made = SignalDependencies(chain, Scripted(), StockDialers(), {}, FrozenClock(), 5.0)
    sources = Sources(reputation=source)  # type: ignore[arg-type]
    seen = await WALLET_SIGNAL.collect(SUBJECT, replace(made, sources=sources))
    assert isinstance(seen, Evidence)
    return WALLET_SIGNAL.weigh(seen, {})


async def test_a_wallet_speaks_by_what_it_spent_at_sellers_that_are_not_its_own() -> None:
    source = Spending(5_000_000)
    some = await paid_others(source)
    assert (some.value, some.confidence) == (62.5, 0.1)
    assert "5.00 USD" in some.reasons[0]
    assert source.asked >= {SUBJECT.wallet}
    assert (await paid_others(Spending(10**12))).value == 100


@pytest.mark.parametrize("source", [None, Spending(None), Spending(0)])
async def test_age_transactions_and_balance_of_a_wallet_are_no_evidence(
    source: Spending | None,
) -> None:
    weighed = await paid_others(source)
    assert (weighed.value, weighed.confidence) == (50, 0)
    assert weighed.reasons


def test_a_wallet_of_earlier_evidence_weighs_what_it_did_when_it_was_made() -> None:
    """The digest is of what the code of version 1 answered for the same evidence."""
    answers: list[object] = []
    for sent in (None, 0, 5, 100, 500):
        for contract in (False, True):
            for days in (None, 0, 7, 30, 90, 365):
                for balance in ("none", "some", "much"):
                    seen: JsonObject = {"transactions": sent, "contract": contract}
                    seen |= {"sinceDays": days, "balance": balance}
                    w = WALLET_SIGNAL.weigh(Evidence(seen), {})
                    answers.append([w.value, w.confidence, list(w.reasons)])
    found = hashlib.sha256(json.dumps(answers).encode()).hexdigest()
    assert found == "b4c0ec27822de5161782f46c31a4758f065d007520e9251b7e0598eee9e2f1f4"


def human(level: str) -> SignalResult:
    evidence = Evidence({"level": level})
    return SignalResult(SignalName.PERSONHOOD, evidence, PERSONHOOD.weigh(evidence, {}))


def behaved(value: float) -> SignalResult:
    return SignalResult(SignalName.SANDBOX, Evidence({}), SignalScore(value, 1.0))


@pytest.mark.parametrize(("level", "points"), [("orb", 8), ("device", 5), ("document", 5)])
def test_a_proven_human_adds_points_and_says_so(level: str, points: float) -> None:
    plain = score([behaved(60)], {}, DEFAULT_WEIGHTS, TOP)
    lifted = score([behaved(60), human(level)], {}, DEFAULT_WEIGHTS, TOP)
    assert lifted.value == plain.value + points
    assert lifted.bonus == points
    assert any(f"adds {points} points" in reason for reason in lifted.reasons)


def test_the_bonus_ends_at_100_and_breaks_no_cap() -> None:
    assert score([behaved(99), human("orb")], {}, DEFAULT_WEIGHTS, TOP).value == 100
    from assay.evaluation.model import Cap  # noqa: PLC0415

    bad = SignalScore(90, 1.0, (), Cap(34.99, "It leaks."))
    capped = [SignalResult(SignalName.SANDBOX, Evidence({}), bad), human("orb")]
    assert score(capped, {}, DEFAULT_WEIGHTS, TOP).value == 34.99


def test_personhood_that_was_asked_for_is_a_signal_and_no_bonus() -> None:
    asked = frozenset({SignalName.SANDBOX, SignalName.PERSONHOOD})
    found = score([behaved(60), human("orb")], {}, DEFAULT_WEIGHTS, TOP, asked)
    assert found.bonus == 0
    assert {c.signal for c in found.contributions} == asked
