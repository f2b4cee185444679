"""A secret field on every dataclass of the service: what serialises an object whole shows it."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from assay.evaluation import demands, store_evaluations

NAME = "canary_secret"
VALUE = "5ec2e7-of-a-domain-object"
MARKS = (NAME, "canarySecret", VALUE)
"""Any of these in a response, and a domain object went there whole."""


def domain_dataclasses() -> Iterator[type[Any]]:
    """Each dataclass of the modules that serving has imported, private ones as well."""
    for module in [m for name, m in sys.modules.items() if name.startswith("assay.")]:
        for one in vars(module).copy().values():
            if (
                isinstance(one, type)
                and dataclasses.is_dataclass(one)
                and one.__module__ == module.__name__
            ):
                yield one


def give_canary(patch: pytest.MonkeyPatch, *kinds: type[Any]) -> None:
    """Let `fields`, `asdict`, `dir` and, of those without slots, `vars` find the secret.

    It is a class attribute, for instances with slots have no place for another; and an entry of
    `__dataclass_fields__`, which is all that `asdict` and the framework's encoder look at.
    Constructors, `replace`, comparison and hashes do not know it.
    """
    for kind in kinds:
        patch.setattr(kind, NAME, VALUE, raising=False)
        patch.setitem(kind.__dict__["__dataclass_fields__"], NAME, _field())
        patch.setitem(kind.__annotations__, NAME, str)
        if kind.__dictoffset__:
            patch.setattr(kind, "__init__", _filling(kind.__init__))


def spare_the_stores(patch: pytest.MonkeyPatch) -> None:
    """Rows and hashes are no responses: what makes them whole does so without the secret."""
    as_dict, fields = dataclasses.asdict, dataclasses.fields
    patch.setattr(store_evaluations, "asdict", lambda one: _without(as_dict(one)))
    patch.setattr(demands, "fields", lambda one: [f for f in fields(one) if f.name != NAME])


def shown(text: str) -> bool:
    """Whether a response's text has the secret, by name or by value."""
    return any(mark in text for mark in MARKS)


def _field() -> Any:
    made: Any = dataclasses.field(default=VALUE, init=False, repr=False, compare=False)
    made.name, made.type = NAME, str
    made._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
    return made


def _filling(init: Callable[..., None]) -> Callable[..., None]:
    def filled(self: Any, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        object.__setattr__(self, NAME, VALUE)

    return filled


def _without(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without(value) for key, value in found.items() if key != NAME}
    if isinstance(found, list | tuple):
        return type(found)(_without(one) for one in found)
    return found
