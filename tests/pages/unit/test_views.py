"""Bars, charts and words for figures."""

from hypothesis import given
from hypothesis import strategies as st

from assay.evaluation.schemas_public import HistoryEntryResponse, ScorePartResponse
from assay.pages.views import bars, brief, chart, figure, log, signed

NAMES = st.sampled_from(["start", "behaviour", "reputation", "wallet_and_people", "cap", "ceiling"])
parts = st.lists(
    st.builds(
        ScorePartResponse,
        name=NAMES,
        points=st.floats(-200, 200, allow_nan=False),
        reasons=st.just([]),
    ),
    max_size=6,
)


def entry(score: float, *reasons: str, day: int = 1) -> HistoryEntryResponse:
    return HistoryEntryResponse(
        evaluated_at=f"2026-03-{day:02}T12:00:00.000Z",
        tier="B",
        tier_before="B",
        score=score,
        rung=0,
        reasons=list(reasons),
        snapshot_hash="0x1",
        previous_hash="0x0",
    )


@given(parts)
def test_every_bar_stays_within_its_row(found: list[ScorePartResponse]) -> None:
    for bar in bars(found):
        assert 0 <= bar.x <= 100
        assert 0 <= bar.width <= 100.01 - bar.x


def test_bars_begin_where_the_one_before_ended() -> None:
    found = [
        ScorePartResponse(name="start", points=50, reasons=[]),
        ScorePartResponse(name="behaviour", points=27.7, reasons=[]),
        ScorePartResponse(name="ceiling", points=-3.7, reasons=[]),
    ]
    assert [(bar.x, bar.width, bar.points) for bar in bars(found)] == [
        (0, 50, "50.0"),
        (50, 27.7, "+27.7"),
        (74, 3.7, "\N{MINUS SIGN}3.7"),
    ]


def test_a_chart_needs_two_evaluations_and_keeps_its_line_inside() -> None:
    assert chart([entry(50)]) is None
    found = chart([entry(100, day=3), entry(0, day=2), entry(50, day=1)])
    assert found is not None
    assert found.points == "10.0,60.0 320.0,120.0 630.0,0.0"
    assert found.label.endswith("from 50 on 1 Mar 2026 to 100 on 3 Mar 2026")


def test_evaluations_that_changed_nothing_are_one_row() -> None:
    rows = log([entry(50), entry(50), entry(50, "Failed: x."), entry(60), entry(60, "First.")])
    assert [row.said for row in rows] == [
        "Nothing changed in 2 evaluations.",
        "Failed: x.",
        "Nothing changed.",
        "First.",
    ]


def test_figures_have_the_decimals_they_need_and_long_names_lose_their_middle() -> None:
    assert [figure(number) for number in (74.0, 34.99, 83.6, 0.0)] == ["74", "34.99", "83.6", "0"]
    assert [signed(points) for points in (0.04, -0.04, 2.46)] == ["0.0", "0.0", "+2.5"]
    assert brief("0x" + "a" * 40) == "0xaaaaaa…aaaaaa"
    assert brief("22") == "22"
