"""What a scrape says of the process itself."""

from datetime import UTC, datetime

import pytest

from assay.analytics import log as call_log
from assay.common.errors import Unavailable
from tests.support.fakes.calls import call
from tests.support.live_service import TestService
from tests.support.scraped import scraped

AT = datetime(2026, 3, 1, tzinfo=UTC)
LOST = "assay_call_log_lost_rows_total"


async def test_a_scrape_says_how_far_the_call_log_is_behind_and_what_it_lost(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = service.app.call_log
    found = await scraped(service.app)
    assert found["assay_call_log_waiting_rows"] == 0
    assert {found[f'{LOST}{{reason="{why}"}}'] for why in ("full", "refused", "quota")} == {0}
    for number in range(3):
        log.add(call("op", "w", AT, path=f"/{number}"))
    assert (await scraped(service.app))["assay_call_log_waiting_rows"] == 3
    monkeypatch.setattr(log, "_waiting", type(log._waiting)(log._waiting, maxlen=3))
    monkeypatch.setattr(call_log, "WAITING_MAX", 3)
    log.add(call("op", "w", AT, path="/3"))
    assert (await scraped(service.app))[f'{LOST}{{reason="full"}}'] == 1


async def test_rows_that_a_database_does_not_take_now_wait(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> None:
        raise Unavailable("The database cannot be used now.")

    log = service.app.call_log
    with monkeypatch.context() as patched:
        patched.setattr(service.app.call_store, "add", gone)
        log.add(call("op", "w", AT, path="/1"))
        with pytest.raises(Unavailable):
            await log.flush()
        assert (await scraped(service.app))["assay_call_log_waiting_rows"] == 1
    await log.flush()
    assert (await scraped(service.app))["assay_call_log_waiting_rows"] == 0


async def test_a_scrape_says_how_late_the_loop_was(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service.app.readiness.lag, "most_s", lambda: 1.5)
    assert (await scraped(service.app))["assay_loop_lag_seconds"] == 1.5
