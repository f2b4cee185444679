"""Registration files as they are in the wild: what is read, and what is in `problems`."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from assay.net.egress.ports import EgressResponse, Limits, OutboundRequest
from assay.registries.documents import DOCUMENT_LIMITS, GuardedDocuments, RegistrationFiles
from tests.support.fakes.clock import FrozenClock

FOLDER = Path(__file__).parents[2] / "vectors" / "registration"
BASE: dict[str, Any] = json.loads((FOLDER / "base.json").read_text("utf-8"))
KINDS = ("services", "members", "claims", "texts", "uris", "others")
VECTORS: list[tuple[str, dict[str, Any]]] = [
    (f"{kind}: {row['name']}", row)
    for kind in KINDS
    for row in json.loads((FOLDER / f"{kind}.json").read_text("utf-8"))
]


class Web:
    """One document at every address, and what was asked for."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.asked: list[str] = []

    async def send(
        self, request: OutboundRequest, limits: Limits = DOCUMENT_LIMITS
    ) -> EgressResponse:
        self.asked.append(request.url)
        kept = self._body[: limits.body_bytes_max]
        return EgressResponse(200, (), kept, truncated=len(kept) < len(self._body), elapsed_ms=1.0)


def text_of(row: dict[str, Any]) -> str:
    if "text" in row:
        return row["text"]
    if "parts" in row:
        return "".join(part * times for part, times in row["parts"])
    if "document" in row:
        return json.dumps(row["document"])
    without = row.get("without", ())
    kept = {key: value for key, value in BASE.items() if key not in without}
    return json.dumps(kept | row.get("with", {}), ensure_ascii=row.get("as") != "latin-1")


def body_of(row: dict[str, Any]) -> bytes:
    text = text_of(row)
    match row.get("as"):
        case "bom":
            return b"\xef\xbb\xbf" + text.encode()
        case "utf-16":
            return text.encode("utf-16")
        case "latin-1":
            return text.encode("latin-1")
        case "gzip":
            return gzip.compress(text.encode())
        case "cut gzip":
            return gzip.compress(b'{"name": "n"}')[:-12]
        case _:
            return text.encode()


def uri_of(row: dict[str, Any], body: bytes) -> str:
    uri = row.get("uri", "https://files.example/agent.json")
    forms = {
        "{plain}": body.decode("utf-8", "replace"),
        "{percent}": quote(body),
        "{base64}": base64.b64encode(body).decode(),
        "{base64url}": base64.urlsafe_b64encode(body).decode().rstrip("="),
        "{gzip64}": base64.b64encode(gzip.compress(body)).decode(),
    }
    for form, text in forms.items():
        uri = uri.replace(form, text)
    return uri


def test_there_are_at_least_120_variants() -> None:
    assert len(VECTORS) >= 120
    assert len({name for name, _ in VECTORS}) == len(VECTORS)


@pytest.mark.parametrize(("name", "row"), VECTORS, ids=[name for name, _ in VECTORS])
async def test_a_registration_file_is_read_leniently_and_judged_strictly(
    name: str, row: dict[str, Any]
) -> None:
    del name
    body = body_of(row)
    web = Web(body)
    documents = GuardedDocuments(web, "https://ipfs.example", arweave_gateway="https://ar.example")
    found, why = await RegistrationFiles(documents, FrozenClock()).read(uri_of(row, body))
    if "fetched" in row:
        assert web.asked == ([row["fetched"]] if row["fetched"] else [])
    if "refused" in row:
        assert found is None
        assert row["refused"] in str(why)
        return
    assert why is None
    assert found is not None
    services = row.get("services", [[s["name"], s["endpoint"]] for s in BASE["services"]])
    assert [[s.name, s.endpoint] for s in found.services] == services
    for attribute, expected in row.get("read", {}).items():
        value = getattr(found, attribute)
        if attribute == "registrations":
            value = [[c.agent_id, c.agent_registry] for c in value]
        assert (list(value) if isinstance(value, tuple) else value) == expected
    noted = row.get("problems", [])
    problems = found.problems[: len(noted)] if row.get("more") else found.problems
    assert [one.where for one in problems] == [where for where, _ in noted]
    for one, (_, words) in zip(problems, noted, strict=True):
        assert words in one.found
        assert one.expected
        assert one.sentence.endswith(".")
