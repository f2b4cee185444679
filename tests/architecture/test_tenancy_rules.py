"""Every question to a store names its operator, or says in its name that it is an admin's.

Payments are left out: a payment is found by its chain and nonce; whoever pays knows no operator.
"""

import dataclasses
import inspect
import typing
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from assay.accounts.model import ApiKey, Operator
from assay.audit.service import AuditEntry

SOURCES = Path(__file__).parents[2] / "src/assay"
FEATURES = ("accounts", "admin", "analytics", "audit", "webhooks", "wrappers")
"""Whose stores hold what is an operator's."""


def stores() -> Iterator[type]:
    """The classes of all modules `store*` of these features."""
    for feature in FEATURES:
        for path in sorted((SOURCES / feature).glob("store*.py")):
            module = import_module(f"assay.{feature}.{path.stem}")
            for name, found in inspect.getmembers(module, inspect.isclass):
                if name.startswith("Sql") and found.__module__ == module.__name__:
                    yield found


UPKEEP = {
    "SqlMissingCalls": "writes again what a crash lost, of everybody",
    "SqlOldAgents": "removes what is old, of everybody",
    "SqlOldCalls": "removes what is old, of everybody",
    "SqlOldRevisions": "removes what is old, of everybody",
    "SqlRetention": "removes what is old, of everybody",
    "SqlRollupProof": "compares all sums with all rows",
    "SqlUnusedAccounts": "removes accounts that nobody ever used",
}
"""Stores that only the service's own work in the background uses, each with what that is."""

ALL = {store.__name__: store for store in stores()}
STORES = tuple(store for name, store in ALL.items() if name not in UPKEEP)

NOBODYS = {
    "SqlOperatorStore.find_by_email": "a log-in: whose account it is, is the question",
    "SqlApiKeyStore.find_by_hash": "a request with a key: whose it is, is the question",
    "SqlApiKeyStore.recent_hashes": "hashes alone, to tell keys from guesses",
    "SqlApiKeyStore.touch": "by the ids of keys that were just found by their hash",
    "SqlSessionStore.touch": "by the ids of sessions that were just found with their account",
    "SqlSessionStore.purge": "what is expired, of everybody",
    "SqlCodeStore.find_code": "a token of a link: whose it is, is the question",
    "SqlCredentialStore.find_login": "a log-in: whose account it is, is the question",
    "SqlCredentialStore.find_code": "a token of a link: whose it is, is the question",
    "SqlAllowanceStore.add": "each count is keyed by its operator",
    "SqlTierStore.quote": "by the wrapper that the call has matched",
    "SqlTierStore.quoted": "by the wrapper that the call has matched",
    "SqlTierStore.spend": "by the wrapper that the call has matched",
    "SqlTierStore.give_back": "by the wrapper that the call has matched",
    "SqlTierStore.remove": "what has ended, of everybody",
    "SqlWebhookStore.claim_due": "the deliverer's: what is due, of everybody",
    "SqlWebhookStore.complete": "the deliverer's: by the id of a delivery it has begun",
    "SqlWebhookStore.give_up": "the deliverer's: what has waited too long, of everybody",
    "SqlWebhookStore.fail_abandoned": "the deliverer's: what it left unfinished",
    "SqlWebhookStore.purge": "the deliverer's: what is old, of everybody",
}
"""Methods that name no operator, each with its reason."""


def methods(store: type) -> Iterator[tuple[str, Any]]:
    for name, method in inspect.getmembers(store, inspect.isfunction):
        if not name.startswith("_"):
            yield f"{store.__name__}.{name}", method


def names_an_operator(method: Any) -> bool:
    hints: Mapping[str, Any] = typing.get_type_hints(method)
    return any(
        name == "operator_id" or _is_ones_own(hint)
        for name, hint in hints.items()
        if name != "return" and AuditEntry not in {hint, *typing.get_args(hint)}
    )


def _is_ones_own(hint: Any) -> bool:
    """A value of an operator's: it has the operator's id in it."""
    if hint is Operator:
        return True
    if dataclasses.is_dataclass(hint):
        parts: Mapping[str, Any] = typing.get_type_hints(hint)
        return "operator_id" in parts or any(map(_is_ones_own, parts.values()))
    return any(_is_ones_own(inner) for inner in typing.get_args(hint))


METHODS = dict(pair for store in STORES for pair in methods(store))


@pytest.mark.parametrize("name", METHODS)
def test_a_store_is_asked_about_one_operator_or_for_an_admin(name: str) -> None:
    if name == "SqlOperatorStore.record":  # the entry is all there is
        assert "operator_id" in {field.name for field in dataclasses.fields(AuditEntry)}
        return
    scoped = names_an_operator(METHODS[name]) or name.endswith("_for_admin")
    assert scoped != (name in NOBODYS), f"{name} names no operator, or needs no exception"


def test_the_stores_of_operators_are_found() -> None:
    assert len(STORES) >= 9
    assert set(UPKEEP) <= set(ALL)


def test_no_exception_outlives_its_method() -> None:
    assert set(NOBODYS) <= set(METHODS)


def test_the_rule_finds_what_it_is_for() -> None:
    class Careless(typing.Protocol):
        async def delete(self, key_id: str, entry: AuditEntry) -> None: ...
        async def add(self, key: ApiKey) -> None: ...

    found = {name: names_an_operator(method) for name, method in methods(Careless)}
    assert found == {"Careless.delete": False, "Careless.add": True}
