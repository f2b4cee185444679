"""How many connections the system's limit of open files has room for."""

import resource
import sys
from typing import Final

from assay.settings import Settings

RESERVED: Final = 576
"""Files that callers never get: outgoing connections of visits, calls and webhooks (280),
connections beyond the caps and of metrics (100), the database (40), and the rest for nodes,
mail, logs and files."""

FILES_PER_CONNECTION: Final = 2
"""A caller's connection, and the one to the upstream of its call."""

CONNECTIONS_MIN: Final = 16
"""Held whatever the limit is."""

CONNECTIONS_SAFE: Final = 128
"""Where fewer fit, a handful of addresses can hold them all."""

ADVICE: Final = "raise the hard limit of open files: LimitNOFILE of systemd, --ulimit of Docker"


def raise_limit() -> int:
    """Raise this process's soft limit to its hard one; how many files it may have open then."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # of a system that has another bound below its hard limit
        return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return _number(hard)


def reachable() -> int:
    """What `raise_limit` would raise the limit to; nothing is changed."""
    return _number(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def fitting(settings: Settings, files: int) -> Settings:
    """The settings with caps of connections that leave `RESERVED` of so many files.

    The caps of one address and of one network are lowered in proportion. The same object where
    all fit.
    """
    total = max(CONNECTIONS_MIN, (files - RESERVED) // FILES_PER_CONNECTION)
    if total >= settings.connections_max:
        return settings

    def share(cap: int) -> int:
        return max(1, cap * total // settings.connections_max)

    return settings.model_copy(
        update={
            "connections_max": total,
            "connections_per_address": share(settings.connections_per_address),
            "connections_per_network": share(settings.connections_per_network),
        }
    )


def needed(settings: Settings) -> int:
    """Files with which no cap is lowered."""
    return RESERVED + FILES_PER_CONNECTION * settings.connections_max


def _number(limit: int) -> int:
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
