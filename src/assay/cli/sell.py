"""`assay sell`: leads from an API's address to its first paid call; run it again to continue.

The steps of a first sale are account, keys, wrapper, funds and a paid call; each is kept.
"""

import asyncio
import json
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx2
from cyclopts import Parameter

from assay.accounts.model import Operator, OperatorNotFound, Plan, Role
from assay.app import App, address_of_key
from assay.app.payments import TransactionTransfer, Wallets, key_in, payment_rows, settling_address
from assay.chains.model import ChainUnavailable
from assay.cli import pay
from assay.cli.command import FAILED, AsJson, complain, problems_in, with_app
from assay.cli.pay import CannotPay
from assay.common.errors import InvalidRequest
from assay.common.json import is_object
from assay.common.numbers import DECIMALS
from assay.common.tasks import both
from assay.payments.model import PaymentNetwork
from assay.payments.networks import accepted_names, network_id
from assay.settings import Settings
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import NewEndpoint

WEI_DIGITS = 18
POLL_S = 3.0
"""Between two looks at balances, or at a service that does not answer yet."""

SETTLED_S = 60.0
"""How long a call that is being settled is repeated, with the same payment."""

FAUCETS: Mapping[str, Mapping[str, str]] = {
    "eip155:84532": {
        "ETH": "https://portal.cdp.coinbase.com/products/faucet",
        "USDC": "https://faucet.circle.com",
    }
}
"""Sources: docs.cdp.coinbase.com/faucets; developers.circle.com/w3s/developer-console-faucet."""

EXPLORERS: Mapping[str, str] = {
    "eip155:8453": "https://basescan.org/tx/",
    "eip155:84532": "https://sepolia.basescan.org/tx/",
}

_PAYMENT_REQUIRED, _NOT_FOUND = 402, 404

Say = Callable[[str, str], None]
"""A step's name, and what to say of it."""


class CannotSell(RuntimeError):
    """The sale stops here; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class SellerSale:
    """What is sold, as it was asked for."""

    url: str
    price: Decimal
    network: PaymentNetwork
    payout_address: str | None = None
    account: str | None = None
    service: str | None = None
    """Where the service answers; None: where the settings say."""
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Funds:
    """What a wallet holds, and has to hold, in the smallest units of its coin."""

    role: str
    address: str
    coin: str
    digits: int
    holds: int
    needs: int

    @property
    def is_enough(self) -> bool:
        """Whether it can do its part."""
        return self.holds >= self.needs

    def shown(self, amount: int) -> str:
        """Return an amount of this coin as text."""
        return f"{Decimal(amount).scaleb(-self.digits).normalize():f} {self.coin}"


@dataclass(frozen=True, slots=True)
class PaidCallResult:
    """The paid call: what came back, and what the chain says of it."""

    status: int
    body: str
    transaction: str
    moved: TransactionTransfer | None


class FirstSale:
    """One installation's sale. Steps that were made before are found, not made again."""

    def __init__(self, app: App, sale: SellerSale, say: Say) -> None:
        self._app, self._sale, self._say = app, sale, say
        self._wallets = Wallets(app.rpc, sale.network)
        folder = app.settings.data_dir
        self.payer_file, self.payout_file = folder / "test-payer.key", folder / "test-payout.key"
        self._account_file = folder / "sell.json"
        self.payer_key = key_in(self.payer_file)
        self.payer = address_of_key(self.payer_key)
        self.facilitator = app.settings.x402_facilitator_url
        self.settler = None if self.facilitator else settling_address(app.settings)

    async def account(self) -> Operator:
        """Return the seller: the named account, or one that this command creates.

        Never just the only one there is: a stranger may have registered it.
        """
        if self._sale.account is not None:
            return await self._app.operators.find_for_admin(self._sale.account)
        try:
            known = json.loads(self._account_file.read_text("utf-8"))
            return await self._app.operators.find_for_admin(str(known["account"]))
        except (FileNotFoundError, OperatorNotFound):
            return await self._new_account()
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise CannotSell(
                f"cannot read {self._account_file}: name an account with --account"
            ) from error

    async def wrapper(self, operator: Operator) -> WrapperConfig:
        """Return the wrapper of this API, creating it if needed. Raises `InvalidRequest`."""
        asked = self._asked()
        for config in await self._app.endpoints.list(operator.id):
            if config.active and (config.method, config.path) == (asked.method, asked.path):
                return self._as_asked(config, asked)
        return await self._app.endpoints.create(operator.id, asked)

    def address(self, config: WrapperConfig) -> str:
        """Return the address that buyers call."""
        base = self._sale.service or self._app.settings.wrap_address
        return f"{base.rstrip('/')}/wrap/{config.operator_id}{config.path}"

    async def funds(self) -> Sequence[Funds]:
        """Return the balances of all wallets involved. Raises `ChainUnavailable`."""
        price = int(self._sale.price.scaleb(DECIMALS))
        balance = await self._wallets.dollars(self.payer)
        payer = Funds("payer", self.payer, "USDC", DECIMALS, balance, price)
        if self.settler is None:
            return [payer]
        balance, needed = await both(
            self._wallets.gas_wei(self.settler), self._wallets.settlement_wei()
        )
        return [Funds("settler", self.settler, "ETH", WEI_DIGITS, balance, needed), payer]

    async def funded(self) -> Sequence[Funds]:
        """Return the wallets once all hold enough, or at once without `wait`."""
        last: object = None
        while True:
            try:
                found = await self.funds()
                missing = [one for one in found if not one.is_enough]
                if not missing or not self._sale.waits:
                    return found
                now = [(one.address, one.holds) for one in missing]
                lines = [
                    f"{f.address} holds {f.shown(f.holds)} of {f.shown(f.needs)}" for f in missing
                ]
            except ChainUnavailable as error:
                if not self._sale.waits:
                    raise
                now, lines = error.message, [f"{error.message} ({error.detail})"]
            if now != last:
                last = now
                for line in lines:
                    self._say("waiting", line)
            await asyncio.sleep(POLL_S)

    async def serves(self, config: WrapperConfig) -> None:
        """Return once the service asks for the payment of this wrapper. Raises `CannotSell`."""
        url, last = self.address(config), ""
        async with httpx2.AsyncClient(timeout=pay.TIMEOUT_S, trust_env=False) as http:
            while True:
                problem = await _problem(http, url)
                if problem is None:
                    return
                if not self._sale.waits:
                    raise CannotSell(problem)
                if problem != last:
                    self._say("waiting", problem)
                    last = problem
                await asyncio.sleep(POLL_S)

    async def call(self, config: WrapperConfig) -> PaidCallResult:
        """Call it as a buyer, pay, and look on the chain. Raises `CannotPay`, `CannotSell`."""
        url = self.address(config)
        payer = pay.PayingClient(self.payer_key, config.price)
        answer = await asyncio.to_thread(self._pay, url, payer)
        transaction = pay.transaction_of(answer)
        moved = None
        if transaction:
            to = config.payout_address or ""
            moved = await self._wallets.moved(transaction, self.payer, to)
        return PaidCallResult(answer.status_code, answer.text, transaction, moved)

    def _pay(self, url: str, payer: pay.PayingClient) -> httpx2.Response:
        with httpx2.Client(timeout=pay.TIMEOUT_S, trust_env=False) as http:
            return pay.call(http, url, payer, lambda text: self._say("call", text), SETTLED_S)

    async def _new_account(self) -> Operator:
        email = f"seller-{secrets.token_hex(4)}@assay.invalid"  # nobody can have registered it
        operator, _ = await self._app.operators.create_for_admin(
            email, secrets.token_urlsafe(32), "Seller", Role.OPERATOR, Plan.FREE
        )
        _write(self._account_file, json.dumps({"account": operator.id}))
        self._say("account", f"made {email}; `assay accounts set-password {email}` opens it to you")
        return operator

    def _asked(self) -> NewEndpoint:
        parts = urlsplit(self._sale.url)
        if parts.query or parts.fragment:
            raise CannotSell("the address has a query or a fragment: buyers send their own")
        return NewEndpoint(
            path=parts.path or "/",
            price=self._sale.price,
            target_url=f"{parts.scheme}://{parts.netloc}",
            network=self._sale.network.id,
            payout_address=self._payout(),
        )

    def _payout(self) -> str:
        known = self._sale.payout_address or self._app.settings.payout_address
        if known is not None:
            return known
        if not self._sale.network.testnet:
            raise CannotSell("real money needs a wallet of yours: --payout-address 0x...")
        return address_of_key(key_in(self.payout_file))

    def _as_asked(self, config: WrapperConfig, asked: NewEndpoint) -> WrapperConfig:
        price = int(asked.price.scaleb(DECIMALS))
        payout = (asked.payout_address or "").lower()
        same = (config.price, config.network, config.target_url, config.payout_address)
        if same != (price, asked.network_id, asked.target_url, payout):
            raise CannotSell(
                f"a wrapper sells {config.method} {config.path} on other terms already: change it"
                f" with `assay wrappers edit {config.id}` and run this again"
            )
        return config


async def _problem(http: httpx2.AsyncClient, url: str) -> str | None:
    """Return why the wrapper cannot be called now, or None."""
    base = "/".join(url.split("/")[:3])
    try:
        answer = await http.get(url)
    except httpx2.HTTPError:
        return (
            f"no Assay answers at {base}: start it with `assay serve` in another terminal, or name"
            " its address with --service"
        )
    if answer.status_code == _PAYMENT_REQUIRED:
        return None
    if answer.status_code == _NOT_FOUND:
        return (
            f"the Assay at {base} does not know the wrapper: run both with the same"
            " ASSAY_DATA_DIR and ASSAY_DATABASE_URL"
        )
    try:
        said = answer.json()
    except ValueError:
        said = None
    message = said.get("message") if is_object(said) else None
    return f"{url} answers {answer.status_code}{f': {message}' if message else ''}"


def _write(path: Path, text: str) -> None:
    """Write the file so that only its owner can read it."""
    path.touch(mode=0o600)
    path.write_text(text, "utf-8")


STOPPED = 130
"""A shell's exit status of a program that Ctrl-C ended."""

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
    """Sell an API, and buy from it once; print every step, and keep it for the next run."""
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
    """Print the account, the wrapper and the wallets, with what to send where."""
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
    """Return the members for `--json`."""
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
