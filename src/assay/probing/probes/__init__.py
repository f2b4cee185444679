"""Every probe of a visit. A new one is a function in the file of its subject.

A new file needs its name in the list here.
"""

from collections.abc import Mapping
from typing import Final

from assay.common.plugins import values_of
from assay.probing.ports import Probe
from assay.probing.probes import (
    a2a,
    bad_requests,
    instructions,
    leaks,
    mcp,
    reachability,
    registration,
    transport,
    x402,
)

PROBES: Final[Mapping[str, Probe]] = values_of(
    (
        a2a,
        bad_requests,
        instructions,
        leaks,
        mcp,
        reachability,
        registration,
        transport,
        x402,
    ),
    Probe,
)
"""By name, sorted."""
