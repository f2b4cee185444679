"""Random kills under load: every payment is served once and paid once, and the books say so.

The long run with its table is `bench/kills.py`.
"""

from pathlib import Path

import pytest

from tests.support.kills import HEAD, Table, mpp_kills, x402_kills
from tests.support.tempo import Tempo

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
KILLS, MPP_KILLS = 15, 8
PAYERS = 6


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_no_kill_loses_doubles_or_gives_away_a_paid_call(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = x402_kills(store, KILLS, PAYERS, tmp_path)
    told(table, capsys)
    served = [call for call in table.calls if call.served]
    assert table.kills == KILLS
    assert len(served) == len(table.calls) > PAYERS
    assert table.on_chain == len(served) * 10_000


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_no_kill_loses_doubles_or_gives_away_a_call_paid_over_mpp(
    tempo: Tempo, store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = mpp_kills(tempo, store, MPP_KILLS, tmp_path)
    told(table, capsys)
    assert table.kills == MPP_KILLS
    assert any(call.served for call in table.calls)


def told(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    """Print the table; what it says of money must hold whatever was killed when."""
    with capsys.disabled():
        print(f"\n{HEAD}\n{table.row()}")  # noqa: T201 - the figures to report
    assert (table.free, table.lost, table.doubled) == (0, 0, 0)
    assert table.on_chain == table.ledger == table.revenue
    assert table.books.differences == []
