"""The words of `assay visits`; each imports its work only when it runs."""

from typing import Annotated

from cyclopts import App, Parameter

Agent = Annotated[str, Parameter(help="Token id of a registered agent.")]
Chain = Annotated[str | None, Parameter(help="Slug of the chain; default: the default one.")]


def visits_group() -> App:
    """The commands about visits at random times."""
    group = App(name="visits", help="Agents visited at random times.")
    for name, command in {
        "show": visits_show,
        "enrol": visits_enrol,
        "withdraw": visits_withdraw,
    }.items():
        group.command(command, name=name)
    return group


def visits_show(agent: Agent, *, chain: Chain = None) -> int:
    """Say when an agent is visited next, and why."""
    from assay.cli import visits  # noqa: PLC0415

    return visits.show(agent, chain)


def visits_enrol(agent: Agent, *, chain: Chain = None) -> int:
    """Enrol an agent in its owner's name, who may have three."""
    from assay.cli import visits  # noqa: PLC0415

    return visits.enrol(agent, chain)


def visits_withdraw(agent: Agent, *, chain: Chain = None) -> int:
    """Take an enrolled agent out again."""
    from assay.cli import visits  # noqa: PLC0415

    return visits.withdraw(agent, chain)
