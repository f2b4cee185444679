"""One page of metrics for several workers: counters never go back, and gauges show the worst."""

from pathlib import Path

import pytest

from assay.cli.worker_metrics import LEAST_ENDINGS, SUMMED, WorkerMetrics, own_metrics
from tests.support.scraped import samples

OPERATE = Path(__file__).parents[2] / "docs/operate.md"

PAGE = """# HELP assay_build_info The version that runs.
# TYPE assay_build_info gauge
assay_build_info{{version="{version}"}} 1.0
# HELP assay_call_log_waiting_rows Calls.
# TYPE assay_call_log_waiting_rows gauge
assay_call_log_waiting_rows {waiting}
# HELP assay_loop_lag_seconds Lag.
# TYPE assay_loop_lag_seconds gauge
assay_loop_lag_seconds {lag}
# HELP assay_facilitator_up Up.
# TYPE assay_facilitator_up gauge
assay_facilitator_up {up}
# HELP assay_call_log_lost_rows_total Lost.
# TYPE assay_call_log_lost_rows_total counter
assay_call_log_lost_rows_total{{reason="full"}} {full}
assay_call_log_lost_rows_total{{reason="quota"}} {quota}
"""
LOST_FULL = 'assay_call_log_lost_rows_total{reason="full"}'


def page(**values: object) -> str:
    plain = {"version": "1", "waiting": 0, "lag": 0, "up": 1, "full": 0, "quota": 0}
    return PAGE.format(**{**plain, **values})


def scraped(metrics: WorkerMetrics, pages: dict[int, str]) -> dict[str, float]:
    return samples(metrics.page(pages, []).decode())


def test_counters_are_sums_and_gauges_are_a_sum_or_the_worst() -> None:
    one = page(waiting=3, lag=0.5, up=1, full=2, quota=1)
    other = page(waiting=4, lag=0.1, up=0, full=5)
    found = scraped(WorkerMetrics(), {1: one, 2: other})
    assert found["assay_call_log_waiting_rows"] == 7
    assert found["assay_loop_lag_seconds"] == 0.5
    assert found["assay_facilitator_up"] == 0
    assert found[LOST_FULL] == 7
    assert found['assay_call_log_lost_rows_total{reason="quota"}'] == 1


def test_a_counter_never_goes_back_when_a_worker_ends_or_does_not_answer() -> None:
    metrics, seen = WorkerMetrics(), list[float]()
    seen.append(scraped(metrics, {1: page(full=2), 2: page(full=5)})[LOST_FULL])
    seen.append(scraped(metrics, {2: page(full=6)})[LOST_FULL])  # the first did not answer
    metrics.end(1)
    seen.append(scraped(metrics, {2: page(full=6)})[LOST_FULL])
    seen.append(scraped(metrics, {2: page(full=6), 3: page(full=1)})[LOST_FULL])
    metrics.end(2)
    metrics.end(4)  # ended before it was ever asked
    seen.append(scraped(metrics, {3: page(full=1)})[LOST_FULL])
    assert seen == [7, 8, 8, 9, 9]


def test_while_two_versions_run_both_are_shown() -> None:
    found = scraped(WorkerMetrics(), {1: page(version="1"), 2: page(version="2")})
    assert found['assay_build_info{version="1"}'] == 1
    assert found['assay_build_info{version="2"}'] == 1


def test_the_supervisor_adds_its_own() -> None:
    own = own_metrics(3, 2, 1, {"ended": 4, "rolling": 6})
    found = samples(WorkerMetrics().page({1: page()}, own).decode())
    assert found["assay_workers_wanted"] == 3
    assert found["assay_workers_serving"] == 2
    assert found["assay_workers_counted"] == 1
    assert found['assay_worker_restarts_total{reason="ended"}'] == 4
    assert found['assay_worker_restarts_total{reason="rolling"}'] == 6


@pytest.mark.parametrize("name", [*SUMMED, *LEAST_ENDINGS])
def test_each_rule_is_about_a_metric_that_exists(name: str) -> None:
    assert f"{name}`" in OPERATE.read_text("utf-8")
