"""What all tests of visits to agents use."""

from collections.abc import AsyncGenerator

import pytest

from assay.egress.url import EgressPolicy
from assay.infra.http.egress import GuardedHttp


@pytest.fixture
async def http() -> AsyncGenerator[GuardedHttp]:
    guarded = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield guarded
    await guarded.aclose()
