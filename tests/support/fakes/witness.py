"""A witness that asks nobody else: the engine's own answers stand."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.common.clock import Clock
from assay.payments.finality import View, Witness
from assay.payments.networks import ROWS
from assay.payments.ports import PaymentProtocol, ProtocolDependencies


def lone_witness(
    protocols: Mapping[str, PaymentProtocol],
    needs: ProtocolDependencies,
    clock: Clock,
    several: Sequence[str] = (),
) -> Witness:
    """One view, and one confirmation is enough. `several`: networks with a second endpoint."""
    nothing: Any = None
    view = View(needs, nothing)
    networks, others = {row.id: row for row in ROWS}, dict.fromkeys(several, view)
    return Witness(networks, protocols, view, others, clock, 0.0)
