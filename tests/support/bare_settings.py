"""Settings are read from the environment only where it sets one: that is a seventh of a start."""

import os
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from pydantic_settings import PydanticBaseSettingsSource

from assay.settings import PREFIX, Settings

Source = PydanticBaseSettingsSource


def _sources(
    _cls: type, init_settings: Source, env_settings: Source, **_others: Source
) -> tuple[Source, ...]:
    """What `Settings` reads; an environment that sets nothing is not asked field by field."""
    is_set = any(name.upper().startswith(PREFIX) for name in os.environ)  # noqa: TID251
    return (init_settings, env_settings) if is_set else (init_settings,)


@contextmanager
def read_where_set() -> Generator[None]:
    """Leave out the environment, as a source of `Settings`, where it sets no field."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Settings, "settings_customise_sources", _sources)
        yield
