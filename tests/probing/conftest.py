"""What all tests of visits to agents use."""

from collections.abc import AsyncGenerator

import pytest

from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy


@pytest.fixture
async def http() -> AsyncGenerator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()
