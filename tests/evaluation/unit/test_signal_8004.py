"""The signal over what a registry and an index answer; the rules have laws of their own."""

import hashlib
import json
import random
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from assay.chains.model import ChainUnavailable, Network
from assay.common.json import JsonObject, JsonValue, canonical_bytes
from assay.common.numbers import MICRO
from assay.evaluation.model import Evidence, SignalUnavailable
from assay.evaluation.ports import SignalDependencies, Sources
from assay.evaluation.signals.registry_8004 import SIGNAL, naive_mean
from assay.probing.clients.dialers import StockDialers
from assay.registries.model import Feedback, OnchainAgent, Subject, WalletMatch
from assay.reputation.evidence import VOTERS_MAX
from assay.reputation.model import AgentFacts, FeedbackEvent, NotIndexed, Payer
from tests.probing.unit.test_probe_visiting import Scripted
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, NOW_S, OWNER, WALLET, FakeChain, onchain_agent

SUBJECT = Subject(NETWORK, "7", WALLET, onchain_agent())
TODAY = NOW_S // 86_400
EARLIER = "c637d013ce8cbe0822e56243c9d08378ed1b81e16a13f937250042cac7950d7a"


@dataclass
class FakeFacts:
    """An index; `fault` is what it raises."""

    found: AgentFacts
    fault: Exception | None = None

    async def facts(self, agent: OnchainAgent, clients: object) -> AgentFacts:
        del agent, clients
        if self.fault:
            raise self.fault
        return self.found

    async def known(self, agent: OnchainAgent) -> AgentFacts | None:
        del agent
        return self.found

    async def owners(self, network: Network, agent_id: str) -> frozenset[str] | None:
        del network, agent_id
        return self.found.owners or None

    async def spent(self, network: Network, wallet: str, side: frozenset[str]) -> int | None:
        del network, wallet, side
        return 0


def said(client: str, value: str, index: int = 1, tag: str = "starred") -> Feedback:
    return Feedback(client, index, Decimal(value), 0, tag, "")


def bought(*clients: str) -> AgentFacts:
    payers = [Payer(c, {TODAY - 60: 4 * MICRO}, elsewhere=4 * MICRO) for c in clients]
    return AgentFacts(day=TODAY, payers=tuple(payers), price=MICRO)


def needs(chain: FakeChain, source: FakeFacts | None = None) -> SignalDependencies:
    made = SignalDependencies(chain, Scripted(), StockDialers(), {}, FrozenClock(), 5.0)
    return replace(made, sources=Sources(reputation=source))


async def seen(*feedback: Feedback, facts: AgentFacts | None = None) -> Evidence:
    chain = FakeChain()
    chain.feedback = feedback
    source = None if facts is None else FakeFacts(facts)
    evidence = await SIGNAL.collect(SUBJECT, needs(chain, source))
    assert isinstance(evidence, Evidence)
    return evidence


async def registration(*owners: str, is_test: bool = False) -> JsonObject:
    """Of a key that owns agent 7, which these have owned; nobody where that is not read."""

    class Chain(FakeChain):
        @override
        async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
            del network, wallet
            return (WalletMatch("6", "agentWallet"), WalletMatch("7", "owner"))

    key = Subject(replace(NETWORK, testnet=is_test), OWNER, OWNER, None)
    found = await SIGNAL.collect(
        key, needs(Chain(), FakeFacts(replace(bought(), owners=frozenset(owners))))
    )
    assert isinstance(found, Evidence)
    assert SIGNAL.weigh(found, {}).confidence == 0
    return {name: value for name, value in found.data.items() if name != "registered"}


async def test_a_registration_stands_for_the_key_that_alone_ever_owned_it() -> None:
    assert await registration(OWNER) == {"registration": f"{NETWORK.caip2}/7"}
    assert await registration(OWNER, "0xbefore") == {}
    assert await registration("0xother") == {}
    assert await registration() == {"registrationUnread": True}
    assert await registration(OWNER, is_test=True) == {}


async def test_the_value_is_the_mean_over_customers_by_what_they_paid() -> None:
    weighed = SIGNAL.weigh(await seen(said("a", "80"), said("b", "90"), facts=bought("a", "b")), {})
    assert weighed.value == 85.0
    assert 0.02 < weighed.confidence < 0.05
    assert weighed.reasons[0].startswith("2 independent customers paid")


async def test_one_voter_has_one_vote_and_it_is_the_latest() -> None:
    many = [said("a", "100", index) for index in range(1, 40)]
    cast = (*many, said("a", "20", 99), said("b", "40"))
    assert SIGNAL.weigh(await seen(*cast, facts=bought("a", "b")), {}).value == 30.0


async def test_present_and_former_owners_have_no_vote() -> None:
    facts = replace(bought("b"), owners=frozenset({OWNER, "before"}))
    cast = (said(WALLET, "100"), said("before", "100"), said("b", "40"))
    evidence = await seen(*cast, facts=facts)
    assert (evidence.data["own"], evidence.data["former"]) == (1, 1)
    weighed = SIGNAL.weigh(evidence, {})
    assert weighed.value == 40.0
    assert "Feedback of its present and former owners does not count." in weighed.reasons


async def test_a_crowd_that_never_paid_counts_for_next_to_nothing() -> None:
    crowd = [said(f"0x{n:040x}", "100") for n in range(3000)]
    weighed = SIGNAL.weigh(await seen(*crowd), {})
    assert weighed.confidence * (weighed.value - 50) <= 3


@pytest.mark.parametrize(
    ("tag", "value", "rating"),
    [
        ("starred", "87", 87.0),
        ("", "87", 87.0),
        ("data_analyst", "95", 95.0),
        ("starred", "-5", 0.0),
        ("uptime", "99.77", 99.77),
        ("successRate", "45", 45.0),
        ("reachable", "1", 100.0),
        ("ownerVerified", "0", 0.0),
        ("reachable", "-1", 0.0),
        ("responseTime", "500", 95.0),
        ("responseTime", "60000", 0.0),
        ("blocktimeFreshness", "4", 60.0),
        ("tradingYield", "-3.2", 42.0),
        ("tradingYield", "900", 100.0),
        ("revenues", "560", None),
        ("starred", "1000000000000000000", None),
        ("reachable", "87", None),
    ],
)
async def test_values_are_read_on_the_scales_of_the_eip(
    tag: str, value: str, rating: float | None
) -> None:
    evidence = await seen(said("a", value, tag=tag), facts=bought("a"))
    found = SIGNAL.weigh(evidence, {})
    assert evidence.data["discarded"] == (rating is None)
    assert (found.value if found.confidence else None) == rating


async def test_a_discarded_entry_does_not_silence_an_earlier_good_one() -> None:
    cast = said("a", "70"), said("a", "7000", 2)
    assert SIGNAL.weigh(await seen(*cast, facts=bought("a")), {}).value == 70.0


async def test_no_feedback_is_no_knowledge() -> None:
    weighed = SIGNAL.weigh(await seen(), {})
    assert weighed.confidence == 0
    assert weighed.reasons


async def test_a_key_agent_is_not_in_the_registry() -> None:
    evidence = await SIGNAL.collect(Subject(NETWORK, WALLET, WALLET, None), needs(FakeChain()))
    assert isinstance(evidence, Evidence)
    assert SIGNAL.weigh(evidence, {}).confidence == 0


def earlier(rng: random.Random) -> JsonObject:
    """Evidence as it was collected before votes counted by money."""
    rows: dict[str, JsonValue] = {}
    for n in range(rng.randint(0, 40)):
        row: dict[str, JsonValue] = {
            "value": str(rng.randint(0, 10_000) / 100),
            "given": NOW_S - rng.randint(0, 10**7),
            "first": NOW_S - rng.randint(0, 10**8),
            "transactions": rng.randint(0, 300),
            "rated": [str(x) for x in rng.sample(range(8), rng.randint(0, 6))],
        }
        if rng.random() < 0.1:
            row["relation"] = rng.choice(["self", "reciprocal"])
        rows[f"0x{n:040x}"] = row
    further: JsonObject = {"reviewers": 2, "sum": "150"}
    times: JsonObject = {"asOf": NOW_S, "timesKnownSince": 1_700_000_000}
    counts: JsonObject = {"entries": 1, "discarded": 0, "further": further}
    return {"registered": True, "reviewers": rows, **times, **counts}


def test_evidence_of_earlier_rules_weighs_what_it_did_when_it_was_made() -> None:
    """The digest is of what the code of version 1 answered for the same 200 pieces of evidence."""
    rng = random.Random(14)
    made = [SIGNAL.weigh(Evidence(earlier(rng)), {}) for _ in range(200)]
    answers = json.dumps([[w.value, w.confidence, list(w.reasons)] for w in made])
    assert hashlib.sha256(answers.encode()).hexdigest() == EARLIER
    assert not any(w.cap for w in made)
    assert naive_mean(earlier(rng)) == 0


async def test_a_chain_that_is_down_is_unavailable_and_not_zero() -> None:
    chain = FakeChain()
    chain.down = ChainUnavailable("The chain cannot be read.")
    assert await SIGNAL.collect(SUBJECT, needs(chain)) == SignalUnavailable(
        "The chain cannot be read."
    )


EVENT = FeedbackEvent("a", 1, 0.0, TODAY - 3)


@pytest.mark.parametrize("rating", [100.0, 60.0, 0.0])
@pytest.mark.parametrize("fault", ["index", "chain"])
async def test_a_chain_that_is_not_read_to_its_end_raises_no_score(
    rating: float, fault: str
) -> None:
    event = replace(EVENT, rating=rating)
    known = replace(bought("a"), events={("a", 1): event})
    whole = await seen(said("a", str(rating)), facts=known)
    chain = FakeChain()
    source = FakeFacts(known)
    if fault == "index":
        source.fault = NotIndexed("blocks 7 to 9 are missing", known)
    else:
        chain.down = ChainUnavailable("The chain cannot be read.")
    got = await SIGNAL.collect(SUBJECT, needs(chain, source))
    before = SIGNAL.weigh(whole, {})
    if isinstance(got, SignalUnavailable):
        assert rating > 50
        assert fault == "chain" or got.reason.startswith("indexing")
        after = 0.0
    else:
        assert got.data["stale"] is True
        weighed = SIGNAL.weigh(got, {})
        after = weighed.confidence * (weighed.value - 50)
    assert after <= before.confidence * (before.value - 50)


async def test_a_crowd_is_counted_whole_and_kept_in_part() -> None:
    crowd = [said(f"0x{n:040x}", "10") for n in range(2 * VOTERS_MAX)]
    evidence = await seen(*crowd)
    votes = evidence.data["votes"]
    assert isinstance(votes, dict)
    assert len(votes) == VOTERS_MAX
    assert evidence.data["voters"] == 2 * VOTERS_MAX


async def test_dissatisfied_customers_lower_the_ceiling_of_the_whole_score() -> None:
    many = [f"0x{n:040x}" for n in range(200)]
    evidence = await seen(*(said(one, "5") for one in many), facts=bought(*many))
    weighed = SIGNAL.weigh(evidence, {})
    assert weighed.cap is not None
    assert weighed.cap.score < 65


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdef"),
            st.decimals(-(10**38), 10**38, allow_nan=False, allow_infinity=False, places=3),
        ),
        max_size=20,
    ),
    st.randoms(use_true_random=False),
)
async def test_any_feedback_gives_a_value_on_the_scale_in_any_order(
    entries: list[tuple[str, Decimal]], shuffle: object
) -> None:
    feedback = [Feedback(c, i, v, 3, "", "") for i, (c, v) in enumerate(entries, 1)]
    evidence = await seen(*feedback, facts=bought("a", "c"))
    shuffle.shuffle(feedback)  # type: ignore[attr-defined]
    assert (await seen(*feedback, facts=bought("a", "c"))).data == evidence.data
    assert 0 <= SIGNAL.weigh(evidence, {}).value <= 100
    assert canonical_bytes(evidence.data)
