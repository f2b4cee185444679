"""Compiles each SQL statement once per test process, not once per database."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import LRUCache
from typing_extensions import override

from assay.db import connect

STATEMENTS_MAX = 2_000


class _CompiledByKind(LRUCache[Any, Any]):
    """Holds what SQLAlchemy keeps for each engine, for all engines with one dialect class.

    SQLAlchemy's key begins with the engine's own dialect object, and every test has an engine of
    its own. The engines of a kind are made in one place, with the same options.
    """

    @override
    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    @override
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


@contextmanager
def compiled_once() -> Generator[None]:
    """Give every engine that is made meanwhile the same cache of compiled statements."""
    shared = {"compiled_cache": _CompiledByKind(STATEMENTS_MAX)}
    with pytest.MonkeyPatch.context() as patch:
        made = partial(create_async_engine, execution_options=shared)
        patch.setattr(connect, "create_async_engine", made)
        yield
