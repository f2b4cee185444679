"""Limits shared by several processes, put together where `ASSAY_STATE_URL` names their server."""

from collections.abc import Mapping
from contextlib import AsyncExitStack

from assay.app.log import Log
from assay.common.clock import Clock
from assay.common.costs import Cost
from assay.common.errors import Unavailable
from assay.common.quota_lease import QuotaLease
from assay.net.valkey import ValkeyWindow
from assay.net.valkey_address import state_address
from assay.settings import Settings


def quotas(settings: Settings) -> Mapping[Cost, int]:
    """What a Free operator, or an address, may cost in a day."""
    return {
        Cost.RPC_CALLS: settings.quota_rpc_calls,
        Cost.EVALUATIONS: settings.quota_evaluations,
        Cost.UNPROVEN_EVALUATIONS: settings.quota_unproven_evaluations,
        Cost.ROWS: settings.quota_rows,
        Cost.ACCOUNT_CHANGES: settings.quota_account_changes,
        Cost.DISK_BYTES: settings.quota_disk_mib * 1024 * 1024,
    }


async def shared_limits(
    settings: Settings, clock: Clock, log: Log, stack: AsyncExitStack, *, serving: bool
) -> QuotaLease | None:
    """The leases of this process; None where limits are its own.

    Who serves has reached the server once: raises `Unavailable` otherwise, and `StateUrlError`
    for a URL that cannot be used.
    """
    if settings.state_url is None:
        return None
    window = ValkeyWindow(state_address(settings.state_url.get_secret_value()))
    stack.push_async_callback(window.aclose)

    def changed(error: Unavailable | None) -> None:
        if error is None:
            log.info("limits are shared again", state=window.place)
        else:
            log.warning(
                "the shared state is out of reach: each process keeps its limits by itself,"
                " and all together admit up to as many times as much",
                state=window.place,
                reason=error.detail,
            )

    quota_lease = QuotaLease(window, clock, changed)
    if serving:
        await _reach(window)
        stack.push_async_callback(quota_lease.close)
    return quota_lease


async def _reach(window: ValkeyWindow) -> None:
    try:
        await window.check()
    except Unavailable as error:
        raise Unavailable(
            f"The shared state at {window.place} (ASSAY_STATE_URL) cannot be used.",
            detail=error.detail,
            retry_after_s=error.retry_after_s,
        ) from error
