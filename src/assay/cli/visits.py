"""`assay visits`: which agents are visited at random times, and when next."""

import sys
from typing import Annotated

from cyclopts import Parameter

from assay.app import App
from assay.cli.command import FAILED, complain, problems_in, secret_from_input, with_app
from assay.common.clock import iso
from assay.common.errors import InvalidRequest
from assay.evaluation.credentials import NewCredential
from assay.evaluation.schedule import EnrolmentHolder
from assay.net.egress.redaction import Place
from assay.registries.model import Subject

Agent = Annotated[str, Parameter(help="Token id of a registered agent.")]
Chain = Annotated[str | None, Parameter(help="Slug of the chain; default: the default one.")]

RANKS = {1: "enrolled by its owner", 2: "asked for", 3: "as capacity allows"}


def show(agent: Agent, *, chain: Chain = None) -> int:
    """Print when the agent is visited next and why."""

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        plan = await app.visits.schedule.find(subject.key)
        if plan is None:
            complain(f"agent {agent} is not in the schedule: enrol it, or evaluate it once")
            return 1
        line = f"{plan.reason}, due {iso(plan.due)}; rank {plan.rank}: {RANKS[plan.rank]}"
        sys.stdout.write(f"{subject.key}: {line}\n")
        return 0

    return with_app(work)


def enrol(agent: Agent, *, chain: Chain = None) -> int:
    """Enrol an agent in its owner's name; an owner may enrol three."""

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        await app.visits.enrolments.enrol(_owner(subject), subject)
        sys.stdout.write(f"{subject.key} is visited at random times\n")
        return 0

    return with_app(work)


def withdraw(agent: Agent, *, chain: Chain = None) -> int:
    """Withdraw an agent that its owner, or a terminal, enrolled."""

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        await app.visits.enrolments.withdraw(_owner(subject), subject.key)
        sys.stdout.write(f"{subject.key} is enrolled no more\n")
        return 0

    return with_app(work)


def deposit(
    agent: Agent,
    url: Annotated[str, Parameter(help="Address it is for, and all below.")],
    *,
    name: Annotated[str, Parameter(help="Name of the header or parameter.")] = "Authorization",
    place: Annotated[Place, Parameter(help="Sent as a header or in the query.")] = "header",
    chain: Chain = None,
) -> int:
    """Deposit a credential that is read from the terminal or from standard input."""
    value = secret_from_input(f"Value of {name}: ")

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        try:
            made = await app.visits.credentials.deposit(
                subject, NewCredential(url, place, name, value)
            )
        except InvalidRequest as error:
            for problem in problems_in(error):
                complain(problem)
            return FAILED
        sys.stdout.write(f"{made.id}  {made.url}  {made.place} {made.name}\n")
        return 0

    return with_app(work)


def credentials(agent: Agent, *, chain: Chain = None) -> int:
    """Print the credentials deposited for an agent."""

    async def work(app: App) -> int:
        for one in await app.visits.credentials.list(await _subject(app, agent, chain)):
            last = f"{one.outcome} at {iso(one.used_at)}" if one.used_at else "not used yet"
            sys.stdout.write(
                f"{one.id}  {one.url}  {one.place} {one.name}, set {iso(one.created_at)}: {last}\n"
            )
        return 0

    return with_app(work)


def erase(
    agent: Agent,
    credential: Annotated[str, Parameter(help="From `visits credentials`.")],
    *,
    chain: Chain = None,
) -> int:
    """Erase a deposited credential."""

    async def work(app: App) -> int:
        await app.visits.credentials.remove(await _subject(app, agent, chain), credential)
        sys.stdout.write(f"{credential} is erased\n")
        return 0

    return with_app(work)


async def _subject(app: App, agent: str, chain: str | None) -> Subject:
    networks = app.networks
    network = networks.default if chain is None else networks.by_slug(chain)
    return await app.subjects.find(network, agent)


def _owner(subject: Subject) -> EnrolmentHolder:
    return EnrolmentHolder(
        "owner", subject.wallet if subject.agent is None else subject.agent.owner
    )
