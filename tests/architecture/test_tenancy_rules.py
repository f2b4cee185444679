"""Every question to a store names its operator, or says in its name that it is an admin's.

Payments are left out: a payment is found by its chain and nonce; whoever pays knows no operator.
"""

import dataclasses
import inspect
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from assay.accounts import ports as accounts
from assay.accounts import ports as credentials
from assay.accounts.model import Operator
from assay.admin import ports as admin
from assay.analytics import ports as calls
from assay.audit import service as audit
from assay.webhooks import ports as webhooks
from assay.wrappers import ports as wrapper

STORES = (
    accounts.OperatorStore,
    accounts.ApiKeyStore,
    accounts.AllowanceStore,
    credentials.SessionStore,
    credentials.CredentialStore,
    admin.AccountEnd,
    audit.AuditStore,
    admin.AdminStore,
    calls.CallStore,
    calls.AnalyticsStore,
    webhooks.WebhookStore,
    wrapper.WrapperStore,
)

NOBODYS = {
    "OperatorStore.find_by_email": "a log-in: whose account it is, is the question",
    "ApiKeyStore.find_by_hash": "a request with a key: whose it is, is the question",
    "ApiKeyStore.recent_hashes": "hashes alone, to tell keys from guesses: of nobody in particular",
    "ApiKeyStore.touch": "by the ids of keys that were just found by their hash",
    "SessionStore.touch": "by the ids of sessions that were just found with their account",
    "SessionStore.purge": "what is expired, of everybody",
    "CredentialStore.find_login": "a log-in: whose account it is, is the question",
    "CredentialStore.find_code": "a token of a link: whose it is, is the question",
    "AllowanceStore.add": "each count is keyed by its operator",
    "WebhookStore.begin": "the deliverer's: what is due, of everybody",
    "WebhookStore.end": "the deliverer's: by the id of a delivery it has begun",
    "WebhookStore.give_up": "the deliverer's: what has waited too long, of everybody",
    "WebhookStore.abandon": "the deliverer's: what it left unfinished",
    "WebhookStore.purge": "the deliverer's: what is old, of everybody",
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
        if name not in {"note", "return"}
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
    if name == "OperatorStore.note":  # the note is all there is
        assert "operator_id" in {field.name for field in dataclasses.fields(audit.AuditEntry)}
        return
    scoped = names_an_operator(METHODS[name]) or name.endswith("_for_admin")
    assert scoped != (name in NOBODYS), f"{name} names no operator, or needs no exception"


def test_no_exception_outlives_its_method() -> None:
    assert set(NOBODYS) <= set(METHODS)


def test_the_rule_finds_what_it_is_for() -> None:
    class Careless(typing.Protocol):
        async def delete(self, key_id: str, note: audit.AuditEntry) -> None: ...
        async def add(self, key: accounts.ApiKey) -> None: ...

    found = {name: names_an_operator(method) for name, method in methods(Careless)}
    assert found == {"Careless.delete": False, "Careless.add": True}
