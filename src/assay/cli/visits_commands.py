"""The words of `assay visits`; each imports its work only when it runs."""

from typing import Annotated, Literal

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
        "deposit": visits_deposit,
        "credentials": visits_credentials,
        "erase": visits_erase,
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


def visits_deposit(
    agent: Agent,
    url: Annotated[str, Parameter(help="Address it is for, and all below.")],
    *,
    name: Annotated[str, Parameter(help="Name of the header or parameter.")] = "Authorization",
    place: Annotated[
        Literal["header", "query"], Parameter(help="Sent as a header or in the query.")
    ] = "header",
    chain: Chain = None,
) -> int:
    """Deposit a credential for a service, in its owner's name; visits need it to enter.

    What it is, such as `Bearer ...`, is asked for, or read from standard input.
    """
    from assay.cli import visits  # noqa: PLC0415

    return visits.deposit(agent, chain, url, place, name)


def visits_credentials(agent: Agent, *, chain: Chain = None) -> int:
    """List the credentials deposited for an agent, without what they are."""
    from assay.cli import visits  # noqa: PLC0415

    return visits.credentials(agent, chain)


def visits_erase(
    agent: Agent,
    credential: Annotated[str, Parameter(help="From `visits credentials`.")],
    *,
    chain: Chain = None,
) -> int:
    """Erase a deposited credential."""
    from assay.cli import visits  # noqa: PLC0415

    return visits.erase(agent, chain, credential)
