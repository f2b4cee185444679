"""Adds up the metrics of several workers: one scrape shows the service of a port as one process.

Source: ADR 0059.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from typing_extensions import override

MEDIA_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

SUMMED: Final = frozenset({"assay_call_log_waiting_rows"})
"""Gauges of which each worker has its own part."""

LEAST_ENDINGS: Final = ("_up", "_balance_coins", "_payable_settlements", "_payable_writes")
"""Endings of gauges whose lowest value is the worst. All other gauges show the highest. Those of
the database are about the same in each worker."""

_Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels of a sample."""


class WorkerMetrics:
    """Sums counters over the workers that run and those that have ended: no counter goes back."""

    def __init__(self) -> None:
        self._counted: dict[int, Mapping[_Key, float]] = {}
        self._ended: dict[_Key, float] = {}

    def note(self, worker: int, page: str) -> None:
        """Remember the counters of a worker's page."""
        self._counted[worker] = {
            _key(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(page)
            if family.type == "counter"
            for sample in family.samples
        }

    def end(self, worker: int) -> None:
        """Keep what a worker that has ended had counted, as far as its last page shows it."""
        _add(self._ended, self._counted.pop(worker, {}))

    def page(self, pages: Mapping[int, str], own: Sequence[Metric]) -> bytes:
        """Return one page: `own`, and what the pages of these workers say together."""
        for worker, page in pages.items():
            self.note(worker, page)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Shown([*own, *self._families([*pages.values()])]))
        return generate_latest(registry)

    def _families(self, pages: Sequence[str]) -> Iterator[Metric]:
        totals = dict(self._ended)
        for counted in self._counted.values():
            _add(totals, counted)
        families: dict[str, Metric] = {}
        values: dict[str, dict[_Key, float]] = {}
        for page in pages:
            for family in text_string_to_metric_families(page):
                made = Metric(family.name, family.documentation, family.type)
                families.setdefault(family.name, made)
                found, combine = values.setdefault(family.name, {}), _rule(family.name)
                for sample in family.samples:
                    key = _key(sample.name, sample.labels)
                    known = found.get(key)
                    found[key] = sample.value if known is None else combine((known, sample.value))
        for name, family in families.items():
            for key, value in values[name].items():
                shown = totals[key] if family.type == "counter" else value
                family.add_sample(key[0], dict(key[1]), shown)
            yield family


def own_metrics(
    wanted: int, serving: int, answered: int, restarts: Mapping[str, int]
) -> list[Metric]:
    """Return what a supervisor knows by itself; `restarts` by reason, since it began."""
    started = CounterMetricFamily(
        "assay_worker_restarts",
        "Workers that were replaced, since the supervisor began.",
        labels=["reason"],
    )
    for reason, count in restarts.items():
        started.add_metric([reason], count)
    return [
        GaugeMetricFamily("assay_workers_wanted", "Workers that should serve.", value=wanted),
        GaugeMetricFamily("assay_workers_serving", "Workers that serve.", value=serving),
        GaugeMetricFamily(
            "assay_workers_counted", "Workers whose numbers this page contains.", value=answered
        ),
        started,
    ]


def _rule(name: str) -> Callable[[tuple[float, float]], float]:
    if name in SUMMED:
        return sum
    return min if name.endswith(LEAST_ENDINGS) else max


def _add(totals: dict[_Key, float], more: Mapping[_Key, float]) -> None:
    for key, value in more.items():
        totals[key] = totals.get(key, 0.0) + value


def _key(name: str, labels: Mapping[str, str]) -> _Key:
    return name, tuple(sorted(labels.items()))


class _Shown(Collector):
    """Returns what it was given."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    @override
    def collect(self) -> Sequence[Metric]:
        return self._families
