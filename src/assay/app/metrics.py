"""Metrics, put together: imported by a process that serves them only."""

from assay import __version__
from assay.app import App
from assay.app.metrics_text import MetricsPage, MetricsSource
from assay.payments.store_counts import SqlPaymentCounts
from assay.reputation.write_back_metrics import WriteBackMetricsSource


def _writing(app: App) -> WriteBackMetricsSource | None:
    if app.write_back is None or app.write_wallet is None:
        return None
    return WriteBackMetricsSource(app.write_back, app.write_wallet)


def metrics_page(app: App) -> MetricsPage:
    """What a scrape gets."""
    return MetricsPage(
        MetricsSource(
            version=__version__,
            settling=app.settling,
            writing=_writing(app),
            rules=app.gas.rules,
            endpoints=app.rpc.endpoints,
            counts=SqlPaymentCounts(app.database),
            clock=app.clock,
        )
    )
