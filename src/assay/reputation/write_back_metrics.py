"""Metrics of scores written back, and of the wallet that pays for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from assay.reputation.wallet_watch import WalletWatch
from assay.reputation.write_back import FeedbackPublisher


@dataclass(frozen=True, slots=True)
class WriteBackMetricsSource:
    """The sources of the numbers."""

    back: FeedbackPublisher
    wallet: WalletWatch


def writing(source: WriteBackMetricsSource, now_s: float) -> Iterator[Metric]:
    """Yield the metrics; those of the wallet only after its first reading."""
    text = "Scores by what became of writing them back, since the process began."
    scores = CounterMetricFamily("assay_write_back_scores", text, labels=["outcome"])
    for outcome, count in source.back.counts.items():
        scores.add_metric([outcome], count)
    yield scores
    found, network = source.wallet.reading, source.wallet.network.slug
    if found is None:
        return
    name = "assay_write_back_wallet_balance_coins"
    text = "What the wallet that writes scores back holds; absent while nobody can say."
    balance = GaugeMetricFamily(name, text, labels=["network"])
    if found.lamports is not None:
        balance.add_metric([network], float(Decimal(found.lamports).scaleb(-9)))
    yield balance
    name = "assay_write_back_wallet_payable_writes"
    text = "Scores that it can pay for, each at the most that it may cost."
    payable = GaugeMetricFamily(name, text, labels=["network"])
    payable.add_metric([network], found.writes)
    yield payable
    name = "assay_write_back_wallet_read_age_seconds"
    age = GaugeMetricFamily(name, "Age of what is known of it.", labels=["network"])
    age.add_metric([network], now_s - found.read_at_s)
    yield age
