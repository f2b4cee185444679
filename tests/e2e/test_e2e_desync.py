"""No caller's bytes become another's request or answer, whatever proxy stands in front.

The cases are in `tests/support/desync/cases.py`; `bench/desync.py` prints the same table.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.support.desync.campaign import STRAIGHT, WAYS, Campaign, Result, table
from tests.support.desync.cases import (
    HIDDEN_REQUESTS,
    UNREAD,
    Case,
    all_cases,
    head,
    length,
)
from tests.support.desync.faulty_proxy import FORGET, faulty_proxy
from tests.support.desync.tenants import tenants

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SHORT_STRIDE = 3
SHOWN = 40
REQUESTS_MIN = 500


async def _campaign(folder: Path, ways: Sequence[str], cases: Sequence[Case]) -> Campaign:
    async with tenants(folder) as both:
        campaign = Campaign(both)
        await campaign.run(ways, cases)
    print(table(campaign.results))  # noqa: T201 - what the test is for, beside its verdict
    return campaign


def _faults(results: Iterable[Result]) -> str:
    said = [str(result) for result in results]
    return "\n".join([f"{len(said)} requests", *said[:SHOWN]])


def _assert_clean(campaign: Campaign) -> None:
    results = campaign.results
    leaked = [one for one in results if one.leaked]
    assert not leaked, _faults(leaked)
    assert not campaign.leaks_of_nobody
    differing = [one for one in results if one.differing]
    assert not differing, _faults(differing)
    broken = [one for one in results if one.broken()]
    assert not broken, _faults(broken)
    held_up = [one for one in results if one.case.group == UNREAD and one.disturbed]
    assert not held_up, _faults(held_up)


async def test_the_campaign_finds_a_proxy_that_forgets_lengths(tmp_path: Path) -> None:
    """What it would say if something leaked: two requests hidden in bodies, a faulty proxy."""
    async with tenants(tmp_path) as both:
        campaign = Campaign(both)
        for name, hidden in HIDDEN_REQUESTS.items():
            data = head(FORGET, length(hidden)) + hidden
            async with faulty_proxy(both.port) as port:
                case = Case("control", name, (data,), "either", (hidden,))
                await campaign.run_over("faulty", port, [case])
    said = {one.case.name: str(one) for one in campaign.results}
    assert [bool(one.leaked) for one in campaign.results] == [True, True, True], said
    assert "the victim was answered with what is the sender's" in said["second"]
    assert "the sender's upstream got VICTIMSECRET" in said["takes-body"]
    assert "the victim was answered as another request" in said["takes-head"]
    assert "a request arrived that the proxy never sent" in said["second"]


async def test_nobody_waits_behind_a_body_that_is_not_read(tmp_path: Path) -> None:
    """Caddy takes an answer for the end of its request, and keeps what it has written to."""
    cases = [case for case in all_cases() if case.group == UNREAD]
    _assert_clean(await _campaign(tmp_path, ["caddy"], cases * 6))


async def test_nobodys_bytes_reach_another_straight_and_behind_caddy(tmp_path: Path) -> None:
    """Every third case, in the order in which they are written."""
    cases = all_cases()[::SHORT_STRIDE]
    _assert_clean(await _campaign(tmp_path, [STRAIGHT, "caddy"], cases))


@pytest.mark.slow
async def test_nobodys_bytes_reach_another_over_any_way(tmp_path: Path) -> None:
    """Every case, straight and behind nginx (two configurations), Caddy, HAProxy and Envoy."""
    cases = all_cases()
    assert len(cases) >= REQUESTS_MIN
    campaign = await _campaign(tmp_path, WAYS, cases)
    assert len(campaign.results) == len(cases) * len(WAYS)
    _assert_clean(campaign)
