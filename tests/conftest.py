"""Fixtures every test may ask for. Heavy things start when first asked for."""

import gc
import os

from hypothesis import settings

# A busy machine is no fault of the code; and what CI finds, a developer must find again.
settings.register_profile("assay", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("assay"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "assay")  # noqa: TID251

for _name in [n for n in os.environ if n.startswith("ASSAY_")]:  # noqa: TID251
    del os.environ[_name]  # noqa: TID251 - a developer's own settings are no part of a test

pytest_plugins = [
    "tests.services.chain",
    "tests.services.shop",
    "tests.services.tempo",
    "tests.services.world",
]


def pytest_collection_finish() -> None:
    """The collector need not look at twenty thousand tests again and again."""
    gc.collect()
    gc.freeze()
