"""Writes what the process knows as Prometheus text (exposition format 0.0.4).

Everything is read when a scrape asks for it; calls count nothing for metrics. Labels are networks
and endpoints of the configuration, never what callers choose.

Only a process that serves metrics imports this module.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from assay import __version__
from assay.analytics.log import CallLog
from assay.app import App
from assay.app.readiness import LoopLag
from assay.chains.evm.rpc_endpoint import RpcEndpoint
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.payments.gas import GasRules
from assay.payments.settling_watch import SettlingWatch
from assay.payments.store_gas import PaymentCounts, SqlPaymentCounts
from assay.reputation.write_back import WriteBackMetricsSource, writing

COUNTED_EVERY_S: Final = 5.0
"""Seconds for which counts of the database are reported again."""
DATABASE_S: Final = 1.0
"""Seconds that a scrape waits for newer counts."""
ENDPOINTS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class MetricsSource:
    """The sources of the numbers."""

    version: str
    settling: SettlingWatch
    writing: WriteBackMetricsSource | None
    rules: GasRules
    endpoints: Mapping[tuple[str, str], RpcEndpoint]
    counts: SqlPaymentCounts
    lag: LoopLag
    calls: CallLog
    clock: Clock


class MetricsPage:
    """The page that a scrape gets; it waits at most `DATABASE_S` for the database."""

    media_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, source: MetricsSource) -> None:
        self._source = source
        self._counted: PaymentCounts | None = None
        self._counted_at_s = 0.0
        self._counting: asyncio.Task[None] | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collector(self._families))

    async def text(self) -> bytes:
        """Return what is known now; for the database, the last counts with their age."""
        is_fresh = self._age_s() < COUNTED_EVERY_S
        if not is_fresh:
            if self._counting is None:  # one question at a time, however many scrapes
                self._counting = asyncio.get_running_loop().create_task(self._count())
            await asyncio.wait([self._counting], timeout=DATABASE_S)
        return generate_latest(self._registry)

    async def aclose(self) -> None:
        """Cancel the running question."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])

    async def _count(self) -> None:
        source = self._source
        try:
            self._counted = await source.counts.read(source.clock.now())
            self._counted_at_s = source.clock.monotonic_s()
        except Unavailable:
            return  # the previous counts are reported, with their age
        finally:
            self._counting = None

    def _age_s(self) -> float:
        if self._counted is None:
            return float("inf")
        return self._source.clock.monotonic_s() - self._counted_at_s

    def _families(self) -> "Iterator[Metric]":
        source = self._source
        build = {"version": source.version}
        yield InfoMetricFamily("assay_build", "The version that runs.", value=build)
        text = "How late the event loop was at most in the last five seconds."
        yield _gauge("assay_loop_lag_seconds", text, source.lag.most_s())
        yield from _call_log(source.calls)
        yield from _key(source)
        yield from _facilitator(source.settling)
        if source.writing is not None:
            yield from writing(source.writing, source.clock.monotonic_s())
        yield _nodes(source.endpoints)
        up = self._age_s() < 2 * COUNTED_EVERY_S
        yield _gauge("assay_database_counts_up", "1 while counts of the database are fresh.", up)
        if self._counted is not None:
            age = "Age of the counts of the database."
            yield _gauge("assay_database_counts_age_seconds", age, self._age_s())
            yield from _payments(self._counted, source)
            yield from _gas(self._counted, source.rules)


class _Collector(Collector):
    """Returns what a function yields."""

    def __init__(self, families: "Callable[[], Iterator[Metric]]") -> None:
        self._families = families

    @override
    def collect(self) -> "Iterator[Metric]":
        return self._families()


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float(value))


def _by_network(name: str, text: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["network"])
    for network, value in sorted(values.items()):
        family.add_metric([network], value)
    return family


def _call_log(calls: CallLog) -> Iterator[Metric]:
    text = "Calls that this process has answered and that are not in the database yet."
    yield _gauge("assay_call_log_waiting_rows", text, calls.waiting)
    text = "Calls that this process did not keep, since it began."
    lost = CounterMetricFamily("assay_call_log_lost_rows", text, labels=["reason"])
    lost.add_metric(["full"], calls.dropped)
    lost.add_metric(["refused"], calls.refused)
    lost.add_metric(["quota"], calls.over_quota)
    yield lost


def _key(source: MetricsSource) -> Iterator[GaugeMetricFamily]:
    now_s, found = source.clock.monotonic_s(), source.settling.readings
    states = {name: one.status.state for name, one in found.items()}
    nonces = {name: one.nonces for name, one in found.items() if one.nonces is not None}
    yield _by_network(
        "assay_settling_key_balance_coins",
        "What the settling key holds, in the network's coin; absent while nobody can say.",
        {
            name: float(Decimal(state.balance).scaleb(-18))
            for name, state in states.items()
            if state is not None
        },
    )
    yield _by_network(
        "assay_settling_key_payable_settlements",
        "Settlements that the settling key can pay for, each at the most that it may cost.",
        {name: one.status.payable for name, one in found.items()},
    )
    yield _by_network(
        "assay_settling_key_unmined_transactions",
        "Transactions of the settling key that a node holds and that are in no block yet.",
        {name: one.unmined for name, one in nonces.items()},
    )
    yield _by_network(
        "assay_settling_key_nonce_gap",
        "Transactions that this process has sent and that the node does not hold.",
        {name: one.gap for name, one in nonces.items()},
    )
    yield _by_network(
        "assay_settling_key_read_age_seconds",
        "Age of what is known of the settling key.",
        {name: now_s - one.read_at_s for name, one in found.items()},
    )


def _facilitator(settling: SettlingWatch) -> Iterator[GaugeMetricFamily]:
    seen = settling.facilitator_seen
    if seen is not None:
        text = "1 while the remote facilitator answers."
        yield _gauge("assay_facilitator_up", text, not seen.problem)


def _nodes(endpoints: Mapping[tuple[str, str], RpcEndpoint]) -> GaugeMetricFamily:
    """Return the state of nodes by host only: the path of an RPC address often holds a key."""
    text = "1 while an RPC endpoint is asked; 0 while it is left alone after failures."
    family = GaugeMetricFamily("assay_rpc_endpoint_up", text, labels=["network", "endpoint"])
    names: dict[tuple[str, str], int] = {}
    for (network, _), endpoint in [*endpoints.items()][:ENDPOINTS_MAX]:
        place = names[network, endpoint.name] = names.get((network, endpoint.name), 0) + 1
        label = endpoint.name if place == 1 else f"{endpoint.name} #{place}"
        family.add_metric([network, label], float(not endpoint.breaker.is_open))
    return family


def _payments(counts: PaymentCounts, source: MetricsSource) -> Iterator[GaugeMetricFamily]:
    now, found = source.clock.now(), counts.open
    none = dict.fromkeys(source.settling.readings, 0)
    yield _by_network(
        "assay_payments_pending",
        "Payments that are being settled and have not ended, up to 10,000.",
        none | {name: one.count for name, one in found.items()},
    )
    yield _by_network(
        "assay_payments_stuck",
        "Those of them that were claimed more than ten minutes ago.",
        none | {name: one.stuck for name, one in found.items()},
    )
    yield _by_network(
        "assay_payments_pending_oldest_seconds",
        "Age of the oldest of them.",
        {
            name: max(timedelta(0), now - one.oldest_at).total_seconds()
            for name, one in found.items()
        },
    )


def _gas(counts: PaymentCounts, rules: GasRules) -> Iterator[GaugeMetricFamily]:
    used = GaugeMetricFamily(
        "assay_gas_free_settlements_today",
        "Settlements of today (UTC) whose gas this service bears, by daily budget.",
        labels=["budget"],
    )
    used.add_metric(["accounts"], counts.free_used)
    used.add_metric(["self_registered"], counts.free_shared_used)
    yield used
    limit = GaugeMetricFamily(
        "assay_gas_free_settlements_limit",
        "The most of a daily budget: of each account, and of all self-registered ones together.",
        labels=["budget"],
    )
    limit.add_metric(["each_account"], rules.free_per_account)
    limit.add_metric(["self_registered"], rules.free_shared)
    yield limit


def _writing(app: App) -> WriteBackMetricsSource | None:
    if app.write_back is None or app.write_wallet is None:
        return None
    return WriteBackMetricsSource(app.write_back, app.write_wallet)


def metrics_page(app: App) -> MetricsPage:
    """Return the page that a scrape gets."""
    return MetricsPage(
        MetricsSource(
            version=__version__,
            settling=app.settling,
            writing=_writing(app),
            rules=app.gas.rules,
            endpoints=app.rpc.endpoints,
            counts=SqlPaymentCounts(app.database),
            lag=app.readiness.lag,
            calls=app.call_log,
            clock=app.clock,
        )
    )
