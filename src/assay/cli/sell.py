"""`assay sell`: from an API's address to its first paid call; run again to go on."""

import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated

import httpx2
from cyclopts import Parameter

from assay.app import App
from assay.app.payment_chains import payment_rows
from assay.cli.command import FAILED, AsJson, complain, problems_in, with_app
from assay.cli.first_sale import (
    EXPLORERS,
    FAUCETS,
    CannotSell,
    FirstSale,
    Funds,
    PaidCallResult,
    Say,
    SellerSale,
)
from assay.cli.pay import CannotPay
from assay.common.errors import InvalidRequest
from assay.common.money import DECIMALS
from assay.payments.model import PaymentNetwork
from assay.payments.networks import accepted_names, network_id
from assay.settings import Settings
from assay.wrappers.model import WrapperConfig

STOPPED = 130
"""A shell's status of what Ctrl-C ended."""

_SHOWN_CHARS = 500
_OK = 200


def sell(  # noqa: PLR0913 - a sale's fields
    url: Annotated[str, Parameter(help="Your API's address, such as https://my.api/quote.")],
    *,
    price: Annotated[str, Parameter(help="USD a call.")],
    network: Annotated[
        str, Parameter(help="Where it is paid; a test network unless you name base.")
    ] = "base-sepolia",
    payout_address: Annotated[
        str | None, Parameter(help="Who is paid; on a test network one is made.")
    ] = None,
    account: Annotated[
        str | None, Parameter(help="Whose wrapper it is, by e-mail address or id; one is made.")
    ] = None,
    service: Annotated[
        str | None, Parameter(help="Where `assay serve` answers; default: as it is set.")
    ] = None,
    no_wait: Annotated[
        bool, Parameter(negative=(), help="Do not wait for the service or for funds.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Sell an API, and buy from it once; every step is told, and kept for the next run."""
    out = sys.stderr if as_json else sys.stdout

    def say(step: str, text: str) -> None:
        out.write(f"{step:<10}{text}\n")
        out.flush()

    async def work(app: App) -> int:
        try:
            sale = SellerSale(
                url=url,
                payout_address=payout_address,
                account=account,
                service=service,
                waits=not no_wait,
                price=_price(price),
                network=_network(app.settings, network),
            )
            return await _sell(app, sale, say, as_json=as_json)
        except InvalidRequest as error:
            for problem in problems_in(error):
                complain(problem)
        except (CannotSell, CannotPay, OSError, httpx2.HTTPError) as error:
            complain(str(error) or type(error).__name__)
        return FAILED

    try:
        return with_app(work)
    except KeyboardInterrupt:
        complain("stopped; the same command goes on from here")
        return STOPPED


async def _sell(app: App, sale: SellerSale, say: Say, *, as_json: bool) -> int:
    steps = FirstSale(app, sale, say)
    operator = await steps.account()
    config = await steps.wrapper(operator)
    for warning in await app.endpoints.warnings(config):
        say("warning", warning)
    _introduce(steps, sale, config, say)
    await steps.serves(config)
    funds = await steps.funded()
    funded = all(one.is_enough for one in funds)
    paid = await steps.call(config) if funded else None
    if paid is not None:
        _report(sale, config, paid, say)
    elif not as_json:
        say("next", "fund the wallets, and run the same command again")
    if as_json:
        sys.stdout.write(json.dumps(_printed(steps, sale, config, funds, paid), indent=2) + "\n")
    return FAILED if paid is not None and not _is_sold(config, paid) else 0


def _price(text: str) -> Decimal:
    try:
        price = Decimal(text)
    except InvalidOperation:
        raise CannotSell(f"the price {text!r} is not a number") from None
    if not price.is_finite() or price <= 0:
        raise CannotSell(
            "the price must be above 0: free wrappers are made by `assay wrappers add`"
        )
    return price


def _network(settings: Settings, name: str) -> PaymentNetwork:
    row = payment_rows(settings).get(network_id(name) or "")
    if row is None or row.protocol != "x402":
        raise CannotSell(f"--network must be one of {accepted_names('x402')}")
    return row


def _introduce(steps: FirstSale, sale: SellerSale, config: WrapperConfig, say: Say) -> None:
    """What there is now, and what has to be sent where."""
    name = f"{sale.network.short_name} ({sale.network.id})"
    say("sells", f"{steps.address(config)} for {sale.price:f} USD on {name}")
    say("paid to", str(config.payout_address))
    if steps.settler is None:
        say("settles", f"the facilitator {steps.facilitator}")
    else:
        say("settles", f"{steps.settler}, which needs ETH for gas")
    say("buys", f"{steps.payer}, with the key of {steps.payer_file}")
    faucets = FAUCETS.get(sale.network.id, {})
    for coin, owner in (("ETH", steps.settler), ("USDC", steps.payer)):
        if owner is not None:
            faucet = faucets.get(coin)
            where = f"free at {faucet}" if faucet else "real money: from a wallet of yours"
            say("fund", f"{owner} with {coin} on {sale.network.short_name}, {where}")


def _report(sale: SellerSale, config: WrapperConfig, paid: PaidCallResult, say: Say) -> None:
    say("answer", paid.body[:_SHOWN_CHARS])
    if paid.moved is None:
        say("on chain", f"nothing yet of {paid.transaction or 'a transaction'}")
        return
    link = EXPLORERS.get(sale.network.id, "") + paid.transaction
    say("on chain", f"{_usd(paid.moved.amount)} USDC to {config.payout_address}, {link}")
    fee = f"{Decimal(paid.moved.fee_wei).scaleb(-18).normalize():f}"
    say("", f"in block {paid.moved.block}, for {fee} ETH of gas")


def _is_sold(config: WrapperConfig, paid: PaidCallResult) -> bool:
    moved = paid.moved
    is_served = paid.status == _OK
    return is_served and moved is not None and moved.amount == config.price


def _printed(
    steps: FirstSale,
    sale: SellerSale,
    config: WrapperConfig,
    funds: Sequence[Funds],
    paid: PaidCallResult | None,
) -> Mapping[str, object]:
    """The members of `--json`."""
    payment = None
    if paid is not None:
        payment = {
            "status": paid.status,
            "transaction": paid.transaction,
            "amount": None if paid.moved is None else _usd(paid.moved.amount),
            "block": None if paid.moved is None else paid.moved.block,
            "feeWei": None if paid.moved is None else str(paid.moved.fee_wei),
        }
    return {
        "wrapper": {
            "id": config.id,
            "operatorId": config.operator_id,
            "url": steps.address(config),
            "targetUrl": config.target_url,
            "pricePerCall": _usd(config.price),
            "paymentNetwork": config.network,
            "payoutAddress": config.payout_address,
        },
        "facilitator": steps.facilitator,
        "wallets": [
            {
                "role": one.role,
                "address": one.address,
                "coin": one.coin,
                "balance": str(one.holds),
                "needed": str(one.needs),
                "faucet": FAUCETS.get(sale.network.id, {}).get(one.coin),
            }
            for one in funds
        ],
        "funded": all(one.is_enough for one in funds),
        "payment": payment,
    }


def _usd(micro: int) -> str:
    return f"{Decimal(micro).scaleb(-DECIMALS):.6f}"
