"""What the ledger keeps of an MPP credential, and that it settles what is kept."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.tempo import Tempo
from tests.support.tempo_shop import credential_parts, header_of, opened, signed

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def test_a_padded_credential_is_paid_with_and_its_padding_kept_nowhere(
    tmp_path: Path, tempo: Tempo
) -> None:
    with opened(tempo, tmp_path) as store:
        url = store.wrap("/echo")
        parts = credential_parts(await signed(url, tempo))
        parts["challenge"]["description"] = "d" * 9_000
        answer = paid(store.shop.http, url, header_of({**parts, "x": "y" * 20_000}))
        assert answer.status_code == 200, answer.text
        again = paid(store.shop.http, url, header_of(parts))
        assert (again.status_code, again.content) == (200, answer.content)
        large = {**parts["payload"], "x": "y" * 17_000}
        refused = paid(store.shop.http, url, header_of({**parts, "payload": large}))
        assert (refused.status_code, refused.json()["reason"]) == (402, "malformed-credential")
    with sqlite3.connect(tmp_path / "assay.db") as database:
        rows = database.execute("SELECT state, credential FROM payments").fetchall()
    ((state, credential),) = rows
    del parts["challenge"]["description"]
    assert (state, json.loads(credential)) == ("delivered", parts)
    assert len(credential) <= 16 * 1024


def paid(http: Any, url: str, header: str) -> Any:
    return http.get(url, headers={"authorization": header})
