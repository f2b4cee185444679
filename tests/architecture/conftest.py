"""What the rules about the code share."""

from collections.abc import Iterator

import pytest

from tests.support import syntax


@pytest.fixture(scope="package", autouse=True)
def trees() -> Iterator[None]:
    """Syntax trees are kept as long as rules are checked."""
    yield
    syntax.forget()
