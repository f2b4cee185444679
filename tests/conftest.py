"""Fixtures every test may ask for. Heavy things start when first asked for."""

import os

for _name in [n for n in os.environ if n.startswith("ASSAY_")]:  # noqa: TID251
    del os.environ[_name]  # noqa: TID251 - a developer's own settings are no part of a test

pytest_plugins = ["tests.services.chain", "tests.services.world"]
