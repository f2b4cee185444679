"""What an adversary who knows the rules can do to a score, and what each rung costs at least.

    python bench/reputation.py [--seed N] [--tries N] [--json]

The adversary has 50 accounts, 7 days, 100 million gas, 100 USD that it may lose (purchases from its
victim included) and 10,000 USD that comes back to it. It chooses a victim, writes the strategies
below and searches their parameters against the real rules and the real score. Ends with status 1
when a bar is not held: it gains at most 3 points, does at most 3 of damage and earns no rung; 200
customers at 95 lift an agent by 6 or more, 200 cheated ones at 5 take it below 65.
The cheapest known cost of each rung, and of getting from a critical finding to allow again, are in
USD, days and lines of code: the demands are those of the ladder, the lines those of the strategy.
"""

import argparse
import inspect
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from assay.common.json import JsonObject
from assay.common.numbers import MICRO
from assay.evaluation.demands import LadderPolicy
from assay.evaluation.ladder import LadderPlace
from assay.evaluation.model import Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.scoring import DEFAULT_WEIGHTS, score
from assay.evaluation.signals.registry_8004 import SIGNAL
from assay.evaluation.signals.wallet import SIGNAL as WALLET
from assay.reputation.agent_facts import SOURCE_STEPS
from assay.reputation.evidence import settlements
from assay.reputation.model import RULES, Payer, Reputation, Vote, payer_json
from assay.reputation.rules import customers, usual_price
from assay.reputation.store_sellers import OTHER_PAYERS

TODAY = 20_700
ACCOUNTS, DAYS, GAS, LOSS, CIRCULATING = 50, 7, 100_000_000, 100.0, 10_000.0
GAS_FEEDBACK, GAS_TRANSFER, GAS_REGISTER = 169_905, 65_000, 132_680
"""Measured on the real contracts; a transfer of a token. Source: feedback.md#gas-of-feedback."""

GAS_FILE = 50_000
"""More that a feedback costs which names a file and its hash."""

GAS_USD = 0.01 / GAS_TRANSFER
"""A cent a token transfer, as on the chains where agents are paid; on Ethereum it is more."""

EXCHANGE_USD = 0.10
"""What withdrawing to one more address costs."""

MOVE_USD = GAS_TRANSFER * GAS_USD
ACCOUNT_USD = min(EXCHANGE_USD, (SOURCE_STEPS + 1) * MOVE_USD)
"""One more account that shares no source with another: from an exchange, or by a chain of transfers
that is longer than it is followed."""

BAR, LIFT, BELOW = 3.0, 6.0, 65.0
STUB_LINES = 60
"""A service that works: a stock framework's example and one real function."""

VOUCHED = LadderPlace(4, 100.0, is_unconfirmed=False, demands=())
"""The highest rung: nothing of what is gained or lost is hidden under a ceiling."""

Dice = random.Random


@dataclass
class World:
    """An agent's payers and votes."""

    payers: dict[str, Payer] = field(default_factory=dict[str, Payer])
    votes: dict[str, Vote] = field(default_factory=dict[str, Vote])

    def add(self, payer: Payer | None, vote: Vote | None) -> None:
        """One more account."""
        if payer is not None:
            self.payers[payer.address] = payer
        if vote is not None:
            self.votes[vote.address] = vote

    def joined(self, other: "World") -> "World":
        """Both."""
        return World(self.payers | other.payers, self.votes | other.votes)

    def seen(self) -> Reputation:
        """As the rules see it."""
        price = usual_price({a: list(p.spent.values()) for a, p in self.payers.items()})
        return Reputation(tuple(self.payers.values()), tuple(self.votes.values()), TODAY, price)


@dataclass(frozen=True)
class Spent:
    """What a strategy cost."""

    loss: float
    circulating: float
    gas: int
    accounts: int

    @property
    def fits(self) -> bool:
        """Whether the adversary has that much."""
        usd = self.loss + self.gas * GAS_USD
        return (
            usd <= LOSS
            and self.circulating <= CIRCULATING
            and self.gas <= GAS
            and self.accounts <= ACCOUNTS
        )


@dataclass(frozen=True)
class Plan:
    """The adversary's parameters: all that the rules look at."""

    accounts: int
    paying: int
    each: float
    elsewhere: float
    wait: int
    """Days between payment and today."""
    over: int
    """Days over which votes are spread."""
    rating: float
    silent: bool
    clusters: int
    """Sources of funds; 0 is an exchange for every account."""
    proven: bool
    """Every vote names a file that proves the payment: seen by the index too, it counts once."""
    resold: float
    """What each account pays at a wrapper of the adversary's own in front of the agent, USD."""


Strategy = Callable[[Plan, Dice, int], tuple[World, Spent]]


def graded(world: World, sandbox: float = 100.0) -> float:
    """The score beside a sandbox and a wallet; no rung holds it down.

    What the adversary's own wallet spends within the 7 days has not matured and counts nothing.
    """
    seen = world.seen()
    data: JsonObject = {
        "rules": RULES,
        "registered": True,
        "day": seen.day,
        "price": seen.price,
        "payers": {p.address: payer_json(p) for p in seen.payers},
        "votes": {v.address: {"rating": str(v.rating), "day": v.day} for v in seen.votes},
    }
    evidence = Evidence(data)
    wallet = Evidence({"rules": 2, "spentUsd": "0.000000"})
    found = [
        SignalResult(SignalName.SANDBOX, Evidence({}), SignalScore(sandbox, 0.9)),
        SignalResult(SignalName.WALLET, wallet, WALLET.weigh(wallet, {})),
        SignalResult(SignalName.REGISTRY_8004, evidence, SIGNAL.weigh(evidence, {})),
    ]
    return score(found, {}, DEFAULT_WEIGHTS, VOUCHED).value


def genuine(rng: Dice, count: int, rating: float, days: int = 60, voting: float = 1.0) -> World:
    """Customers of their own: 2 to 6 dollars on two or more days, and as much at other sellers."""
    world = World()
    for n in range(count):
        address = f"0xaa{n:038x}"
        first = TODAY - rng.randint(days // 2, days)
        spent = {first + k * 3: round(rng.uniform(1.0, 3.0) * MICRO) for k in range(2)}
        payer = Payer(address, spent, elsewhere=round(rng.uniform(2, 8) * MICRO), is_charge=True)
        given = max(0.0, min(100.0, rng.gauss(rating, 4)))
        vote = Vote(address, given, TODAY - rng.randint(0, days // 2 - 6))
        world.add(payer, vote if rng.random() < voting else None)
    return world


def buy(plan: Plan, rng: Dice, sign: int) -> tuple[World, Spent]:
    """Accounts that buy and vote: a rival's money is lost, one's own comes back."""
    world, lost, round_trip, gas = World(), 0.0, 0.0, 0
    for n in range(plan.accounts):
        address, vote_day = f"0xee{n:038x}", TODAY - rng.randint(0, plan.over)
        pays = n < plan.paying
        days = [TODAY - plan.wait, TODAY - max(0, plan.wait - 1)]
        half = round(plan.each * MICRO / 2)
        source = (f"0xff{n % plan.clusters:038x}",) if plan.clusters else ()
        payer = Payer(
            address,
            {days[0]: half, days[1]: half} if days[0] != days[1] else {days[0]: 2 * half},
            elsewhere=round(plan.elsewhere * MICRO),
            is_charge=True,
            sources=source,
            resold={days[0]: round(plan.resold * MICRO)} if plan.resold else {},
        )
        votes = not (plan.silent and pays)
        world.add(payer if pays else None, Vote(address, plan.rating, vote_day) if votes else None)
        gas += (GAS_FEEDBACK if votes else 0) + (2 * GAS_TRANSFER if pays else 0)
        gas += GAS_TRANSFER if pays and plan.resold else 0
        gas += GAS_FILE if plan.proven and pays and votes else 0
        round_trip += plan.resold if pays else 0.0
        lost += plan.each if pays and sign < 0 else 0.0
        round_trip += plan.each if pays and sign > 0 else 0.0
        round_trip += plan.elsewhere if pays else 0.0
    return world, Spent(lost, round_trip, gas, plan.accounts)


def flood(plan: Plan, rng: Dice, sign: int) -> tuple[World, Spent]:
    """Nobody pays; every account votes."""
    del sign
    world = World()
    for n in range(plan.accounts):
        world.add(None, Vote(f"0xee{n:038x}", plan.rating, TODAY - rng.randint(0, plan.over)))
    return world, Spent(0.0, 0.0, plan.accounts * GAS_FEEDBACK, plan.accounts)


def refund(plan: Plan, rng: Dice, sign: int) -> tuple[World, Spent]:
    """The agent sends the money back to whom it came from: it may be used over and over."""
    world, spent = buy(plan, rng, sign)
    back = {
        a: Payer(p.address, p.spent, returned=p.net, elsewhere=p.elsewhere, is_charge=True)
        for a, p in world.payers.items()
    }
    return World(back if sign > 0 else world.payers, world.votes), spent


def sweep(plan: Plan, rng: Dice, sign: int) -> tuple[World, Spent]:
    """The owner funds its own customers."""
    world, spent = buy(plan, rng, sign)
    own = {
        a: Payer(p.address, p.spent, elsewhere=p.elsewhere, is_charge=True, is_own=sign > 0)
        for a, p in world.payers.items()
    }
    return World(own, world.votes), spent


def resell(plan: Plan, rng: Dice, sign: int) -> tuple[World, Spent]:
    """Votes of accounts that paid nobody but the adversary, as a reseller of the victim."""
    del rng, sign
    world, gas = World(), 0
    for n in range(plan.accounts):
        address = f"0xee{n:038x}"
        paid = {TODAY - plan.wait: round(plan.resold * MICRO)}
        source = (f"0xff{n % plan.clusters:038x}",) if plan.clusters else ()
        elsewhere = round(plan.elsewhere * MICRO)
        payer = Payer(address, {}, elsewhere=elsewhere, sources=source, resold=paid)
        world.add(payer, Vote(address, plan.rating, TODAY - n % (plan.over + 1)))
        gas += GAS_FEEDBACK + 2 * GAS_TRANSFER
    return world, Spent(0.0, plan.accounts * (plan.resold + plan.elsewhere), gas, plan.accounts)


def copy_proofs(plan: Plan, rng: Dice, sign: int) -> tuple[World, Spent]:
    """Votes whose files name payments of the victim's customers: a stranger's proves nothing."""
    world, spent = flood(plan, rng, sign)
    return world, replace(spent, gas=spent.gas + plan.accounts * GAS_FILE)


STRATEGIES: tuple[Strategy, ...] = (buy, flood, refund, sweep, resell, copy_proofs)


@dataclass(frozen=True)
class Found:
    """The worst that was found against one victim."""

    target: str
    gain: float
    damage: float
    by_gain: str
    by_damage: str


def victims(rng: Dice) -> Mapping[str, World]:
    """Agents as they are: new, loved, hated, in between, changing."""
    changing = genuine(rng, 200, 90, days=200, voting=1.0)
    old = {a: Vote(a, v.rating, TODAY - 120) for a, v in changing.votes.items()}
    turned = {a: Vote(a, 30.0, TODAY - n % 20) for n, a in enumerate(sorted(old)) if n % 2}
    return {
        "nobody's": World(),
        "three customers": genuine(rng, 3, 90),
        "twelve at 90": genuine(rng, 12, 90),
        "forty at 90": genuine(rng, 40, 90),
        "two hundred at 95": genuine(rng, 200, 95),
        "thirty mixed": genuine(rng, 15, 90).joined(_renamed(genuine(rng, 15, 10))),
        "twelve at 15": genuine(rng, 12, 15),
        "eighty at 35": genuine(rng, 80, 35),
        "two hundred at 5": genuine(rng, 200, 5),
        "twenty of cents": cheap(rng, 20),
        "silent but back": genuine(rng, 60, 90, voting=0.05),
        "changing": World(changing.payers, old | turned),
        "about to change": World(changing.payers, old | dict(list(turned.items())[:14])),
    }


def cheap(rng: Dice, count: int) -> World:
    """A seller of cents: customers who spent almost a dollar, a tenth of a cent at a time."""
    world = World()
    for n in range(count):
        address = f"0xac{n:038x}"
        first = TODAY - rng.randint(31, 60)
        spent = dict.fromkeys(range(first, first + 30), 31_000)
        payer = Payer(address, spent, elsewhere=2 * MICRO, is_charge=True)
        world.add(payer, Vote(address, 95.0, TODAY - n % 25))
    return world


def _renamed(world: World) -> World:
    swap = {a: a.replace("0xaa", "0xab") for a in world.payers}
    return World(
        {swap[a]: Payer(swap[a], p.spent, elsewhere=p.elsewhere, is_charge=True)
         for a, p in world.payers.items()},
        {swap[a]: Vote(swap[a], v.rating, v.day) for a, v in world.votes.items()},
    )  # fmt: skip


def random_plan(rng: Dice) -> Plan:
    """Anything that is possible."""
    accounts = rng.choice([ACCOUNTS, ACCOUNTS, rng.randint(1, ACCOUNTS)])
    return Plan(
        accounts=accounts,
        paying=rng.choice([accounts, accounts, rng.randint(0, accounts)]),
        each=rng.choice([0.01, 0.5, 1.0, 1.5, 1.7, 1.9, 2.0, 4.0, 50.0, 200.0]),
        elsewhere=rng.choice([0.0, 0.5, 2.0, 50.0]),
        wait=rng.choice([0, 1, 3, DAYS, DAYS]),
        over=rng.choice([0, 2, 3, DAYS]),
        rating=rng.choice([0.0, 20.0, 50.0, 75.0, 100.0]),
        silent=rng.random() < 0.2,
        clusters=rng.choice([0, 0, 0, 1, 5, 25]),
        proven=rng.random() < 0.3,
        resold=rng.choice([0.0, 0.0, 1.0, 2.0, 50.0, 200.0]),
    )


def better(rng: Dice, plan: Plan) -> Plan:
    """One parameter changed."""
    name = rng.choice(list(asdict(plan)))
    return Plan(**(asdict(plan) | {name: asdict(random_plan(rng))[name]}))


def attack(name: str, world: World, rng: Dice, tries: int) -> Found:
    """Hill climbing over every strategy, in both directions."""
    before = {s: graded(world, s) for s in (100.0, 60.0)}
    worst = {1: (0.0, "nothing"), -1: (0.0, "nothing")}
    for sign, strategy in ((s, t) for s in (1, -1) for t in STRATEGIES):
        plan, height = random_plan(rng), -1.0
        for _ in range(tries):
            trial = better(rng, plan) if rng.random() < 0.7 else random_plan(rng)
            made, spent = strategy(trial, Dice(7), sign)
            if not spent.fits or trial.paying > trial.accounts:
                continue
            joined = world.joined(made)
            moved = max(sign * (graded(joined, s) - was) for s, was in before.items())
            if moved > height:
                plan, height = trial, moved
            if moved > worst[sign][0]:
                worst[sign] = (moved, f"{strategy.__name__} {trial}")
    return Found(name, worst[1][0], worst[-1][0], worst[1][1], worst[-1][1])


@dataclass(frozen=True)
class Price:
    """The cheapest known way to something."""

    what: str
    usd: float
    days: int
    lines: int
    how: str


def prices() -> Sequence[Price]:
    """Rungs are earned with a service that works; what is bought is the rest."""
    register = GAS_REGISTER * GAS_USD
    lines = len(inspect.getsource(buy).splitlines())
    domain = 10.0
    return (
        Price("rung 1", register, 0, STUB_LINES, "a service that works, on a free host"),
        Price("rung 1 by sales alone", register + sales_bought(), 2, STUB_LINES + lines,
              "three accounts are charged a third of a dollar here, and buy at a shop of one's own,"
              " that 20 others pay: nothing has to be served"),
        Price("the same, sellers listed", register + sales_bought(is_listed=True), 2,
              STUB_LINES + lines, "three accounts lose a third of a dollar at a listed seller"),
        Price("rung 2", register, 7, STUB_LINES, "the same, kept up for a week"),
        Price("rung 3", register + customers_bought(20, 1.0), 30, STUB_LINES + 2 * lines,
              "20 accounts buy for a dollar here and at a shop of one's own, that 20 others pay;"
              " all of it comes back"),
        Price("rung 3 of the next agent", register + 20 * MOVE_USD, 30, STUB_LINES,
              "the same accounts buy once more"),
        Price("rung 3, sellers listed", register + customers_bought(20, 1.0, is_listed=True), 30,
              STUB_LINES + lines, "20 accounts lose a dollar each at a listed seller"),
        Price("rung 3 of the next, listed", register + 20 * (1.0 + 2 * MOVE_USD), 30, STUB_LINES,
              "what was lost is shared out among all agents that the accounts pay"),
        Price("rung 3 by own resale", register + customers_bought(20, 1.0, is_resold=True), 30,
              STUB_LINES + 3 * lines, "the same, paid to a wrapper of one's own in front of the"
              " agent: what a reseller earns counts like money that was paid here, up to 2 USD"),
        Price("rung 4", register + customers_bought(100, 10.0), 60, STUB_LINES + 2 * lines,
              "a human, and 100 such customers of 10 USD each, here and at a shop of one's own"),
        Price("rung 4, sellers listed", register + customers_bought(100, 10.0, is_listed=True), 60,
              STUB_LINES + lines, "a human, and 100 accounts that lose 10 USD each"),
        Price("rung 4 by a stake", register + customers_bought(20, 1.0) + 2 * MOVE_USD, 60,
              STUB_LINES + 2 * lines, "a human, and 500 USD bound in a contract that the operator"
              " listed: fees alone, and what is bound comes back unless the agent is punished"),
        Price("key agent's rung 1", register, 2, STUB_LINES,
              "the caller suite, and one registration for each key: sold on, it counts for nobody"),
        Price("key agent by purchases", key_bought(), 2, STUB_LINES + lines,
              "5 USD at a wrapper of one's own, that 20 others pay"),
        Price("key agent, sellers listed", key_bought(is_listed=True), 2, STUB_LINES,
              "5 USD lost at a listed seller"),
        Price("critical finding to allow", register + domain, 1, STUB_LINES,
              "a new domain, wallet and id, changed content, and one unannounced visit passed"),
    )  # fmt: skip


def key_bought(*, is_listed: bool = False) -> float:
    """What a key agent's purchases cost; a shop of one's own gives the money back."""
    usd = LadderPolicy().caller_usd
    if is_listed:
        return usd + MOVE_USD
    return 2 * MOVE_USD + OTHER_PAYERS * (ACCOUNT_USD + MOVE_USD)


def customers_bought(
    count: int, each: float, *, is_listed: bool = False, is_resold: bool = False
) -> float:
    """What so many customers cost who look independent; checks that the rules ask for all of it."""
    usd = round(each * MICRO)

    def shown(elsewhere: int) -> JsonObject:
        world = World()
        for n in range(count):
            spent, address = {TODAY - 30 + n % 10: usd}, f"0xee{n:038x}"
            paid = Payer(address, {} if is_resold else spent, elsewhere=elsewhere, is_charge=True)
            world.add(replace(paid, resold=spent if is_resold else {}), None)
        return customers(world.seen(), is_main=True)

    needed = {"clusters": count, "days": 10, "usdNet": f"{each * count:.6f}", "sinceDays": 30}
    if not all(shown(usd)[name] == value for name, value in needed.items()):
        raise AssertionError(f"the cheapest plan is not enough any more: {shown(usd)}")
    if float(str(shown(usd - 1)["usdNet"])) >= each * count:
        raise AssertionError("less is enough: the plan is not the cheapest")
    mine = count * (ACCOUNT_USD + 2 * MOVE_USD)
    if is_listed:
        return mine + count * each
    return mine + OTHER_PAYERS * (ACCOUNT_USD + MOVE_USD) + GAS_REGISTER * GAS_USD


def sales_bought(*, is_listed: bool = False) -> float:
    """What settlements cost that prove a service which only sells, and that less is not enough."""
    policy = LadderPolicy()
    needed = {"clusters": policy.sold_clusters, "days": policy.sold_days, "usd": policy.sold_usd}
    each = -(-round(policy.sold_usd * MICRO) // policy.sold_clusters)

    def is_enough(count: int, usd: int) -> bool:
        world = World()
        for n in range(count):
            spent = {TODAY - 1 - n % policy.sold_days: usd}
            world.add(Payer(f"0xdd{n:038x}", spent, elsewhere=usd, is_charge=True), None)
        shown = settlements(replace(world.seen(), price=usd // 10))  # in ten calls
        found = {**shown, "usd": float(str(shown["usdNet"]))}
        return all(float(str(found[name])) >= least for name, least in needed.items())

    count = policy.sold_clusters
    if not is_enough(count, each) or is_enough(count, each - 1) or is_enough(count - 1, 2 * each):
        raise AssertionError("the plan is not the cheapest any more")
    mine = count * (ACCOUNT_USD + 2 * MOVE_USD)
    if is_listed:
        return mine + policy.sold_usd
    return mine + OTHER_PAYERS * (ACCOUNT_USD + MOVE_USD) + GAS_REGISTER * GAS_USD


def rungs_held(rng: Dice) -> bool:
    """Whether no plan of a week gives the customers that rung 3 asks for."""
    for _ in range(300):
        plan = random_plan(rng)
        shown = customers(buy(plan, rng, 1)[0].seen(), is_main=True)
        if int(str(shown["sinceDays"])) >= 30:
            return False
    return True


def main() -> int:
    """Print the tables; 1 when a bar is not held."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=8004)
    parser.add_argument("--tries", type=int, default=150)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = Dice(options.seed)
    found = [attack(name, w, rng, options.tries) for name, w in victims(rng).items()]
    alone = graded(World())
    lifted, cheated = graded(genuine(rng, 200, 95)), graded(genuine(rng, 200, 5))
    bars = {
        "gain": max(f.gain for f in found) <= BAR,
        "damage": max(f.damage for f in found) <= BAR,
        "rungs": rungs_held(rng),
        "200 at 95 lift": lifted - alone >= LIFT,
        "200 at 5 sink": cheated < BELOW,
    }
    table = {
        "attacks": [asdict(f) for f in found],
        "genuine": {"nobody": alone, "200 at 95": lifted, "200 at 5": cheated},
        "prices": [asdict(p) for p in prices()],
        "bars": bars,
    }
    if options.json:
        print(json.dumps(table, indent=1))
    else:
        _show(found, table)
    return int(not all(bars.values()))


def _show(found: Sequence[Found], table: Mapping[str, object]) -> None:
    print(f"{'victim':20} {'gain':>6} {'damage':>6}")
    for f in found:
        print(f"{f.target:20} {f.gain:6.2f} {f.damage:6.2f}  {f.by_damage}")
    for p in prices():
        print(f"{p.what:28} {p.usd:7.2f} USD {p.days:3} days {p.lines:4} lines  {p.how}")
    print(f"{table['genuine']}\n{table['bars']}")


if __name__ == "__main__":
    sys.exit(main())
