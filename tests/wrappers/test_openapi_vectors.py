"""Documents in the shape of public APIs, and what becomes of every operation of each.

`openapi/NAME.expected.json` has a list of imports into an empty account: what is asked, and the
operations created and refused, or the error of the whole document.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.model import Operator, Plan, Role
from assay.accounts.store_operators import SqlOperatorStore
from assay.common.errors import InvalidRequest
from assay.common.keyring import SecretBox
from assay.db.engine import Database
from assay.net.egress.url import EgressPolicy
from assay.payments.networks import payment_networks
from assay.wrappers import service
from assay.wrappers.endpoint_rules import ConfigRules, NewEndpoint
from assay.wrappers.openapi_import import ImportedOperation, OpenApiImport, import_openapi
from assay.wrappers.openapi_operations import OPERATIONS_MAX
from assay.wrappers.service import Endpoints
from assay.wrappers.store import SqlWrapperStore
from tests.support.databases import migrated_sqlite
from tests.support.fakes.clock import FrozenClock

AT = datetime(2026, 3, 1, tzinfo=UTC)
FOLDER = Path(__file__).parent / "openapi"
DOCUMENTS = sorted(one for one in FOLDER.iterdir() if ".expected." not in one.name)
TERMS = NewEndpoint("", Decimal("0.01"), None, payout_address="0x" + "ab" * 20, active=False)


class Accounts:
    """Accounts of one database, one after the other."""

    def __init__(self, database: Database) -> None:
        self.database, self.count = database, 0
        rules = ConfigRules(EgressPolicy(), payment_networks({}), None, Decimal(1))
        secrets = SecretBox.from_secrets("k" * 40)
        store = SqlWrapperStore(database)
        self.endpoints = Endpoints(store, secrets, rules, FrozenClock(AT))

    async def another(self) -> str:
        self.count += 1
        who = f"op{self.count}"
        made = Operator(who, f"{who}@b.cc", who, Role.OPERATOR, Plan.FREE, Decimal(0), AT, AT)
        await SqlOperatorStore(self.database).add(made, "hash")
        return who


@pytest.fixture
def accounts(database: Database) -> Accounts:
    return Accounts(database)


def asked_of(text: str, asked: dict[str, Any]) -> OpenApiImport:
    terms = replace(TERMS, target_url=asked.get("targetUrl"))
    return OpenApiImport(text, terms, asked.get("operations", ()))


def reason_of(problem: str) -> str:
    """A problem without the sentence for upstreams on one's own network, which names the id."""
    return problem.partition("; for an API on your own network")[0]


def shown(results: Sequence[ImportedOperation]) -> dict[str, Any]:
    made = [(one.name, one.wrapper) for one in results if one.wrapper and one.is_new]
    return {
        "created": [[name, c.path, c.target_url, c.description] for name, c in made],
        "refused": [[one.name, reason_of(one.problem)] for one in results if one.problem],
    }


def test_there_are_twenty_documents_and_every_version() -> None:
    texts = [one.read_text("utf-8") for one in DOCUMENTS]
    assert len(texts) >= 20
    for version in ('"swagger": "2.0"', "openapi: 3.0", "openapi: 3.1", "openapi: 3.2"):
        assert any(version in text for text in texts), version


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: one.name)
async def test_every_operation_becomes_a_draft_or_is_refused_with_the_reason(
    tmp_path: Path, document: Path
) -> None:
    database = await Database.open(migrated_sqlite(tmp_path / "assay.db"))
    try:
        await compare(Accounts(database), document)
    finally:
        await database.close()


def text_of(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


async def compare(accounts: Accounts, document: Path) -> None:
    text = text_of(document.name)
    for run in json.loads(text_of(f"{document.stem}.expected.json")):
        asked, who = asked_of(text, run.pop("asked")), await accounts.another()
        if "error" in run:
            assert await error_of(accounts, who, asked) == run["error"]
            assert await accounts.endpoints.list(who) == []
        else:
            await check(accounts, who, asked, run)


async def error_of(accounts: Accounts, who: str, asked: OpenApiImport) -> str:
    with pytest.raises(InvalidRequest) as refusal:
        await import_openapi(accounts.endpoints, who, asked)
    details: Any = refusal.value.extras["details"]
    [problem] = details
    return problem["message"]


async def check(
    accounts: Accounts, who: str, asked: OpenApiImport, expected: dict[str, Any]
) -> None:
    """A dry run says what an import does; the import does it, and a second one does nothing."""
    endpoints = accounts.endpoints
    would = await import_openapi(endpoints, who, replace(asked, dry_run=True))
    assert shown(would) == expected
    assert await endpoints.list(who) == []
    assert shown(await import_openapi(endpoints, who, asked)) == expected
    stored = await endpoints.list(who)
    assert len(stored) == len(expected["created"])
    assert not any(config.active for config in stored)
    again = await import_openapi(endpoints, who, asked)
    assert shown(again) == {"created": [], "refused": expected["refused"]}
    assert [one.name for one in again if one.wrapper] == [row[0] for row in expected["created"]]
    assert await endpoints.list(who) == stored


async def test_a_document_of_too_many_operations_is_refused(
    accounts: Accounts,
) -> None:
    who = await accounts.another()
    for extra, kept in ((1, 0), (0, OPERATIONS_MAX)):
        operation = {"get": {"responses": {}}}
        paths = {f"/r{n}": operation for n in range(OPERATIONS_MAX + extra)}
        text = json.dumps({"openapi": "3.1.0", "paths": paths})
        asked = asked_of(text, {"targetUrl": "https://api.example.com"})
        if extra:
            assert await error_of(accounts, who, asked) == "has more than 2,000 paths"
        else:
            await import_openapi(accounts.endpoints, who, asked)
        assert len(await accounts.endpoints.list(who)) == kept


async def test_two_imports_at_once_create_everything_once(accounts: Accounts) -> None:
    who = await accounts.another()
    text = text_of("petstore-2.0.json")
    asked = asked_of(text, {"operations": ["POST /pet", "DELETE /pet/{petId}"]})
    results: list[list[ImportedOperation]] = []

    async def run() -> None:
        results.append([*await import_openapi(accounts.endpoints, who, asked)])

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(run())
    assert sum(one.is_new for result in results for one in result) == 4
    assert all(one.wrapper for result in results for one in result)
    assert len(await accounts.endpoints.list(who)) == 4


async def test_an_import_stops_at_the_limits_of_the_account(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "KEPT_MAX", 3)
    monkeypatch.setattr(service, "ENDPOINTS_MAX", 1)
    text = text_of("operation-ids.yaml")
    first, other = await accounts.another(), await accounts.another()
    drafts = asked_of(text, {})
    active = replace(drafts, terms=replace(drafts.terms, active=True))
    found = await import_openapi(accounts.endpoints, first, active)
    assert [bool(one.is_new) for one in found] == [True, False, False]
    assert "may be active" in found[1].problem
    again = await import_openapi(accounts.endpoints, first, drafts)
    assert [bool(one.is_new) for one in again] == [False, True, True]
    more = replace(drafts, document=text.replace("/one", "/more"))
    [refused, *_] = await import_openapi(accounts.endpoints, first, more)
    assert "an account keeps" in refused.problem
    assert all(one.is_new for one in await import_openapi(accounts.endpoints, other, drafts))
