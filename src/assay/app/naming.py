"""The setting's name in front of what is wrong with its value."""

from collections.abc import Generator
from contextlib import contextmanager

from assay.common.errors import InvalidRequest


@contextmanager
def naming(setting: str) -> Generator[None]:
    """Make errors about a value `ValueError`s whose sentence begins with the setting's name."""
    try:
        yield
    except InvalidRequest as error:
        raise ValueError(f"{setting}: {error.message}") from error
    except ValueError as error:
        raise ValueError(f"{setting}: {error}") from error
