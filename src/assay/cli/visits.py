"""`assay visits`: which agents are visited at random times, and when next."""

import sys

from assay.chains.subject import Subject
from assay.cli.run import complain, with_app
from assay.evaluation.enrolment import Holder
from assay.kit.clock import iso
from assay.wiring import App

RANKS = {1: "enrolled by its owner", 2: "asked for", 3: "as capacity allows"}


def show(agent: str, chain: str | None) -> int:
    """Print when the agent is visited next and why."""

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        plan = await app.visits.schedule.find(subject.key)
        if plan is None:
            complain(f"agent {agent} is not in the schedule: enrol it, or evaluate it once")
            return 1
        told = f"{plan.reason}, due {iso(plan.due)}; rank {plan.rank}: {RANKS[plan.rank]}"
        sys.stdout.write(f"{subject.key}: {told}\n")
        return 0

    return with_app(work)


def enrol(agent: str, chain: str | None) -> int:
    """Enrol an agent in its owner's name, who may have three."""

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        await app.visits.enrolments.enrol(_owner(subject), subject)
        sys.stdout.write(f"{subject.key} is visited at random times\n")
        return 0

    return with_app(work)


def withdraw(agent: str, chain: str | None) -> int:
    """Take an agent out again that its owner, or a terminal, enrolled."""

    async def work(app: App) -> int:
        subject = await _subject(app, agent, chain)
        await app.visits.enrolments.withdraw(_owner(subject), subject.key)
        sys.stdout.write(f"{subject.key} is enrolled no more\n")
        return 0

    return with_app(work)


async def _subject(app: App, agent: str, chain: str | None) -> Subject:
    networks = app.networks
    network = networks.default if chain is None else networks.by_slug(chain)
    return await app.subjects.find(network, agent)


def _owner(subject: Subject) -> Holder:
    return Holder("owner", subject.wallet if subject.agent is None else subject.agent.owner)
