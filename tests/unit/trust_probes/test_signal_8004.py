from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.chains.model import ChainUnavailable, Feedback, Reviewer
from assay.infra.agents.dialers import StockDialers
from assay.kit.canonical import canonical_bytes
from assay.trust.model import Evidence, Subject, Unavailable
from assay.trust.ports import SignalNeeds
from assay.trust.signals.registry_8004 import REVIEWERS_MAX, SIGNAL
from tests.fakes.clock import FrozenClock
from tests.fakes.trust import NETWORK, NOW_S, WALLET, FakeChain, onchain_agent
from tests.unit.trust_probes.test_probe_visiting import Scripted

SUBJECT = Subject(NETWORK, "7", WALLET, onchain_agent())


def said(client: str, value: str, index: int = 1, tag: str = "starred") -> Feedback:
    return Feedback(client, index, Decimal(value), 0, tag, "")


async def seen(*feedback: Feedback) -> Evidence:
    chain = FakeChain()
    chain.feedback = feedback
    evidence = await SIGNAL.collect(SUBJECT, needs(chain))
    assert isinstance(evidence, Evidence)
    return evidence


def needs(chain: FakeChain) -> SignalNeeds:
    return SignalNeeds(chain, Scripted(), StockDialers(), {}, FrozenClock(), 5.0)  # type: ignore[arg-type]


async def test_the_value_is_the_mean_over_established_reviewers() -> None:
    weighed = SIGNAL.weigh(await seen(said("a", "80"), said("b", "90")), {})
    assert weighed.value == 85.0
    assert weighed.confidence == pytest.approx(2 / 5, abs=0.02)
    assert weighed.reasons[0].startswith("2 reviewers in the registry")
    assert "the plain average is 85" in weighed.reasons[0]


async def test_one_reviewer_has_one_voice_and_it_is_the_latest() -> None:
    many = [said("a", "100", index) for index in range(1, 40)]
    weighed = SIGNAL.weigh(await seen(*many, said("a", "20", 99), said("b", "40")), {})
    assert weighed.value == 30.0


async def test_the_agents_own_addresses_have_no_voice() -> None:
    weighed = SIGNAL.weigh(await seen(said(WALLET, "100"), said("b", "40")), {})
    assert weighed.value == 40.0
    assert "Feedback from the agent's own addresses does not count." in weighed.reasons


async def test_reviewers_without_a_past_count_together_like_a_handful() -> None:
    chain = FakeChain()
    crowd = [f"0x{n:040x}" for n in range(300)]
    chain.reviewers = dict.fromkeys(crowd, Reviewer(1, NOW_S, frozenset()))
    chain.feedback = (said("a", "20"), *(said(one, "100") for one in crowd))
    evidence = await SIGNAL.collect(SUBJECT, needs(chain))
    assert isinstance(evidence, Evidence)
    weighed = SIGNAL.weigh(evidence, {})
    assert weighed.value < 32
    assert any(sentence.startswith("300 reviewers have no history") for sentence in weighed.reasons)


async def test_reviewers_of_whom_nothing_is_known_lower_confidence_and_are_told() -> None:
    chain = FakeChain()
    chain.feedback = (said("a", "90"), said("b", "90"))
    known = SIGNAL.weigh(await seen(*chain.feedback), {})
    chain.reviewers = dict.fromkeys("ab", Reviewer())
    evidence = await SIGNAL.collect(SUBJECT, needs(chain))
    assert isinstance(evidence, Evidence)
    unknown = SIGNAL.weigh(evidence, {})
    assert unknown.confidence < known.confidence / 5
    assert "Of 2 reviewers no history could be read." in unknown.reasons


async def test_other_scales_and_impossible_values_are_discarded_and_counted() -> None:
    evidence = await seen(
        said("a", "50"),
        said("b", "1000000000000000000"),
        said("c", "-5"),
        said("d", "99", tag="uptime"),
    )
    assert (evidence.data["entries"], evidence.data["discarded"]) == (1, 3)
    assert SIGNAL.weigh(evidence, {}).value == 50.0


async def test_a_discarded_entry_does_not_silence_an_earlier_good_one() -> None:
    assert SIGNAL.weigh(await seen(said("a", "70"), said("a", "7000", 2)), {}).value == 70.0


async def test_no_feedback_is_no_knowledge() -> None:
    weighed = SIGNAL.weigh(await seen(), {})
    assert weighed.confidence == 0
    assert weighed.reasons


async def test_a_key_agent_is_not_in_the_registry() -> None:
    evidence = await SIGNAL.collect(Subject(NETWORK, WALLET, WALLET, None), needs(FakeChain()))
    assert isinstance(evidence, Evidence)
    assert SIGNAL.weigh(evidence, {}).confidence == 0


async def test_a_chain_that_is_down_is_unavailable_and_not_zero() -> None:
    chain = FakeChain()
    chain.down = ChainUnavailable("The chain cannot be read.")
    assert await SIGNAL.collect(SUBJECT, needs(chain)) == Unavailable("The chain cannot be read.")


async def test_a_crowd_is_counted_whole_and_kept_in_part() -> None:
    crowd = [said(f"0x{n:040x}", "10" if n % 2 else "20") for n in range(2 * REVIEWERS_MAX)]
    evidence = await seen(*crowd)
    reviewers = evidence.data["reviewers"]
    assert isinstance(reviewers, dict)
    assert len(reviewers) == REVIEWERS_MAX
    assert evidence.data["further"] == {"reviewers": REVIEWERS_MAX, "sum": str(15 * REVIEWERS_MAX)}
    weighed = SIGNAL.weigh(evidence, {})
    assert "the plain average is 15" in weighed.reasons[0]


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
    evidence = await seen(*feedback)
    shuffle.shuffle(feedback)  # type: ignore[attr-defined]
    assert (await seen(*feedback)).data == evidence.data
    assert 0 <= SIGNAL.weigh(evidence, {}).value <= 100
    assert canonical_bytes(evidence.data)
