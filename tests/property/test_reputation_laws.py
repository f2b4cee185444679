"""What must hold of weighed feedback, whatever the feedback."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.trust.reputation import Voice, decay, judge, standing, voices_of_cluster

NOW_S = 1_790_000_000
DAY_S = 86_400
ROOT = Path(__file__).parents[2]

times = st.none() | st.integers(NOW_S - 900 * DAY_S, NOW_S)
voices = st.lists(
    st.builds(
        Voice,
        address=st.integers(0, 10**9).map(lambda n: f"0x{n:040x}"),
        value=st.integers(0, 100).map(float),
        given_s=times,
        first_s=times,
        transactions=st.none() | st.integers(0, 10_000),
        rated=st.none() | st.frozensets(st.integers(0, 30).map(str), max_size=6),
        relation=st.sampled_from([None, None, None, "self", "reciprocal"]),
    ),
    max_size=40,
    unique_by=lambda voice: voice.address,
)


@given(voices, times)
def test_the_value_lies_between_the_voices_and_the_confidence_between_0_and_1(
    heard: list[Voice], since_s: int | None
) -> None:
    found = judge(heard, NOW_S, since_s)
    counted = [v.value for v in heard if v.relation != "self"]
    if found is None:
        assert counted == []
        return
    assert min(counted) - 0.01 <= found.value <= max(counted) + 0.01
    assert 0 <= found.confidence < 1
    assert found.mass + 0.0001 > 0
    assert found.mass <= len(counted) + 0.0001


@given(voices, st.randoms(use_true_random=False))
def test_the_order_of_the_voices_does_not_matter(heard: list[Voice], dice: object) -> None:
    shuffled = list(heard)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert judge(shuffled, NOW_S, None) == judge(heard, NOW_S, None)


@given(voices, st.integers(1, 200), st.sampled_from([0.0, 100.0]))
@settings(max_examples=50)
def test_accounts_made_for_the_purpose_never_count_more_than_a_handful(
    heard: list[Voice], count: int, value: float
) -> None:
    crowd = [Voice(f"0xf{n:039x}", value, NOW_S, NOW_S, 1, frozenset(), None) for n in range(count)]
    found = judge([*heard, *crowd], NOW_S, None)
    assert found is not None
    ours = sum(w.weight for w in found.voices if w.voice.address.startswith("0xf"))
    assert ours <= 0.25 * voices_of_cluster(count + len(heard))


@given(st.integers(0, 10_000), st.integers(0, 900), st.integers(0, 6))
def test_a_longer_past_never_lowers_the_standing(sent: int, days: int, others: int) -> None:
    base = Voice(
        "0x0", 50.0, NOW_S, NOW_S - days * DAY_S, sent, frozenset(map(str, range(others))), None
    )
    more = replace(
        base,
        transactions=sent + 1,
        first_s=(base.first_s or 0) - DAY_S,
        rated=frozenset(map(str, range(others + 1))),
    )
    assert 0 < standing(base, NOW_S) <= standing(more, NOW_S) <= 1


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_age_only_lowers_what_a_voice_counts(age_s: int, more_s: int) -> None:
    assert decay(age_s + more_s) <= decay(age_s) <= 1
    assert decay(90 * DAY_S) == 0.5


def test_the_bars_of_the_attack_benchmark_are_held() -> None:
    run = [sys.executable, "bench/reputation.py", "--json"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
