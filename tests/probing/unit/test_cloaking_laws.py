"""Laws of the comparison of announced and unannounced visits."""

import hashlib
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from assay.probing.cloaking import DAYS_MIN, PAIRS_MIN, CloakingSighting, differences

VISITS = 100


def visits(random: Random, value: str = "v") -> list[CloakingSighting]:
    """A hundred visits, four a day, of both kinds at random, the unannounced from new addresses."""
    return [
        CloakingSighting("tools", order, order // 4, announced, value, source)
        for order in range(VISITS)
        for announced in [random.random() < 0.5]
        for source in ["home" if announced else f"proxy {random.randrange(200)}"]
    ]


def honest(kind: str, seed: int) -> list[CloakingSighting]:
    """One of the ways in which honest agents differ from visit to visit."""
    random = Random(f"{kind}/{seed}")
    salt, deploys = random.random(), sorted(random.sample(range(VISITS), 3))

    def value(seen: CloakingSighting) -> str | None:
        epoch = sum(seen.order >= at for at in deploys)
        if kind == "releases":
            return f"v{epoch}"
        if kind == "roll-out by address":
            bucket = hashlib.sha256(f"{salt}/{seen.source}".encode()).digest()[0] % 2
            return f"v{epoch} {bucket}"
        if kind == "noise":
            return f"v{random.randrange(3)}"
        if kind == "new every time":
            return f"v{seen.order}"
        return "v" if seen.announced else None  # a bot wall

    return [
        CloakingSighting(s.check, s.order, s.day, s.announced, value(s), s.source)
        for s in visits(random)
    ]


KINDS = ("releases", "roll-out by address", "noise", "new every time", "bot wall")


def test_honest_variance_is_never_a_finding_at_any_moment() -> None:
    """Sixty honest agents, a hundred visits each, looked at after every visit."""
    for seed in range(60):
        seen = honest(KINDS[seed % len(KINDS)], seed)
        for upto in range(2, VISITS + 1):
            assert not any(d.is_finding for d in differences(seen[:upto]))


@given(st.integers(0, 10_000))
def test_whoever_looks_at_the_asker_is_found(seed: int) -> None:
    random = Random(seed)
    seen = [
        CloakingSighting(
            s.check, s.order, s.day, s.announced, "good" if s.announced else "bad", s.source
        )
        for s in visits(random)
    ]
    assert [d.is_finding for d in differences(seen)] == [True]


@given(st.integers(0, 10_000), st.integers(2, VISITS))
def test_a_finding_has_its_pairs_its_days_and_its_chance(seed: int, upto: int) -> None:
    seen = [
        CloakingSighting(s.check, s.order, s.day, s.announced, str(s.announced), s.source)
        for s in visits(Random(seed))
    ][:upto]
    for found in differences(seen):
        assert not found.is_finding or (
            found.pairs >= PAIRS_MIN and found.days >= DAYS_MIN and found.p < 0.001
        )


@given(st.integers(0, 10_000))
def test_refusals_and_time_outs_change_nothing(seed: int) -> None:
    random = Random(seed)
    seen = honest("noise", seed)
    gaps = [
        CloakingSighting(s.check, VISITS + n, 30 + n, random.random() < 0.5, None, s.source)
        for n, s in enumerate(seen)
    ]
    assert differences([*seen, *gaps]) == differences(seen)


def test_a_worse_answer_to_the_announced_visit_is_no_cloaking() -> None:
    seen = [
        CloakingSighting("sum", n, n, n % 2 == 0, "wrong" if n % 2 == 0 else "right", f"p{n}", True)  # noqa: FBT003
        for n in range(VISITS)
    ]
    assert differences(seen) == []
