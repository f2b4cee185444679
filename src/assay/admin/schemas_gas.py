"""The keys that pay for settling and for writing back, as admins see them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from assay.payments.settling_watch import FacilitatorStatus, KeyStatus
from assay.server.schemas_base import ResponseModel


class SettlingKeyResponse(ResponseModel):
    """The key that settles x402 payments, on a network where wrappers are sold."""

    network: str
    address: str
    balance: Annotated[str | None, Field(description="Coins; null while nobody can say.")]
    gas_price_gwei: str | None
    payable: Annotated[
        int, Field(description="Settlements it can pay for now, each at the most it may cost.")
    ]
    problem: str


class FacilitatorResponse(ResponseModel):
    """The remote facilitator that settles x402 payments."""

    networks: Annotated[
        list[str] | None,
        Field(description="Those of ours that it lists; null where it does not say."),
    ]
    problem: Annotated[str, Field(description="Why it does not answer; empty where it does.")]


class PaymentNodeResponse(ResponseModel):
    """Whether a node answers, of a network sold on where no settling key asks one."""

    network: str
    answers: bool


def payment_nodes(found: Mapping[str, bool]) -> list[PaymentNodeResponse]:
    """Those nodes on the wire."""
    return [PaymentNodeResponse(network=one, answers=answers) for one, answers in found.items()]


class SolanaWalletResponse(ResponseModel):
    """The wallet that writes scores to the registry on Solana."""

    address: str
    lamports: Annotated[int | None, Field(description="Null while nobody can say.")]


def settling_key(found: KeyStatus) -> SettlingKeyResponse:
    """The key on one network, on the wire."""
    state = found.state
    return SettlingKeyResponse(
        network=found.network,
        address=found.address,
        balance=None if state is None else f"{Decimal(state.balance).scaleb(-18):f}",
        gas_price_gwei=None if state is None else f"{Decimal(state.gas_price).scaleb(-9):f}",
        payable=found.payable,
        problem=found.problem,
    )


def facilitator(found: FacilitatorStatus) -> FacilitatorResponse:
    """The facilitator, on the wire."""
    networks = None if found.networks is None else sorted(found.networks)
    return FacilitatorResponse(networks=networks, problem=found.problem)
